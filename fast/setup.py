"""Builds against the headers of the lxml that is there."""

import lxml
from Cython.Build import cythonize
from setuptools import Extension, setup

includes = lxml.get_include()
setup(
    ext_modules=cythonize(
        [Extension("shingleback_fast", ["shingleback_fast.pyx"], include_dirs=includes)],
        include_path=includes,
    )
)
