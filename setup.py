"""What pyproject.toml can't say: the part that a C compiler makes faster, and the README with links that work anywhere."""

import re
import sys
import tomllib
from pathlib import Path

import lxml
from setuptools import Extension, setup

source = tomllib.loads(Path("pyproject.toml").read_text("utf-8"))["project"]["urls"]["Source"]
readme = Path("README.md").read_text("utf-8")
readme = re.sub(r"(!\[[^]]*\]\()(?!\w+:)", rf"\1{source}/raw/HEAD/", readme)
readme = re.sub(r"(\]\()(?!\w+:|#)", rf"\1{source}/blob/HEAD/", readme)

fast = Extension(
    "dedup.fast",
    ["dedup/fast.pyx"],  # setuptools has Cython compile it, and puts it into the sdist
    depends=["dedup/tokenizer.pxi", "dedup/lines.pxi"],
    include_dirs=lxml.get_include(),
    extra_compile_args=[] if sys.platform == "win32" else ["-O3"],
    optional=True,  # without a compiler the package is built without it
)
setup(ext_modules=[fast], long_description=readme, long_description_content_type="text/markdown")
