"""Prints each dependency of pyproject.toml at its floor, as pip's constraints: ``python tests/plugins/floors.py``."""

import re
import tomllib
from pathlib import Path

#: Packages of others that the oldest Scrapy can't do with in their newest versions: it imports what is gone there.
OTHERS = ["twisted<26"]


def floors(pyproject: str) -> list[str]:
    """The constraints.

    >>> floors('[project]\\ndependencies = ["lxml>=6", "redis>=5.0.3"]')
    ['lxml==6', 'redis==5.0.3', 'twisted<26']
    """
    wanted = tomllib.loads(pyproject)["project"]["dependencies"]
    return [re.sub(r">=([\d.]+)$", r"==\1", dependency) for dependency in wanted] + OTHERS


if __name__ == "__main__":
    print(*floors((Path(__file__).parents[2] / "pyproject.toml").read_text()), sep="\n")
