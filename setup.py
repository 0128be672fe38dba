"""Compiles a part of the filter, if there is a C compiler.  Everything else is in pyproject.toml."""

import sys

import lxml
from Cython.Build import cythonize
from setuptools import Extension, setup

headers = lxml.get_include()
fast = Extension(
    "dedup.fast",
    ["dedup/fast.pyx"],
    include_dirs=headers,
    extra_compile_args=[] if sys.platform == "win32" else ["-O3"],
)
compiled = cythonize([fast], include_path=headers)
for extension in compiled:
    extension.optional = True  # without a compiler the package is built without it; cythonize() forgets this
setup(ext_modules=compiled)
