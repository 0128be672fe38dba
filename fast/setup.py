"""Builds against the headers of the lxml that is there."""

import sys

import lxml
from Cython.Build import cythonize
from setuptools import Extension, setup

includes = lxml.get_include()
faster = [] if sys.platform == "win32" else ["-O3"]
setup(
    ext_modules=cythonize(
        [
            Extension(
                "shingleback_fast", ["shingleback_fast.pyx"], include_dirs=includes, extra_compile_args=faster
            )
        ],
        include_path=includes,
    )
)
