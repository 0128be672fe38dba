"""The walls between the rooms hold: `lint-imports` reports every forbidden import that is planted in a copy."""

import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path
from typing import NamedTuple

import grimp
import pytest

from tests.support import ROOT

PRODUCTS = ("dedup", "crawler")
#: Every folder with modules, by its name as a package.
PACKAGES = sorted(
    ".".join(path.parent.relative_to(ROOT).parts)
    for product in PRODUCTS
    for path in (ROOT / product).rglob("__init__.py")
)
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
#: The floors of dedup from the top, and the rooms on each.
FLOORS = [
    [room.strip() for room in floor.split("|")]
    for contract in SETTINGS["contracts"]
    if contract.get("containers")
    for floor in contract["layers"]
]

ONE_WAY = "imports point one way"
CRAWLER = "the crawler stands on the library"
CIRCLES = "no import circles"
SCRAPY = "scrapy and twisted only in dedup.scrapy, dedup.contrib and crawler"
REDIS = "redis only in dedup.index.redis"
SPARK = "pyspark only in dedup.contrib.spark"
ITSELF = "the package itself knows its lower floors only"
TESTS = "no product imports its tests or benchmarks"


class Plant(NamedTuple):
    """A forbidden import."""

    contract: str
    module: str  #: that it is added to; a new module where that is possible, so that no plant hides another
    line: str
    imported: str


def plants() -> Iterator[Plant]:
    """All that is forbidden, in every folder."""
    for package in PACKAGES:
        if not package.startswith(("dedup.scrapy", "dedup.contrib", "crawler")):
            yield Plant(SCRAPY, f"{package}.planted_scrapy", "import scrapy", "scrapy")
            yield Plant(SCRAPY, f"{package}.planted_request", "from scrapy.http import Request", "scrapy")
            yield Plant(SCRAPY, f"{package}.planted_twisted", "from twisted.internet import defer", "twisted")
        if not package.startswith("dedup.index.redis"):
            yield Plant(REDIS, f"{package}.planted_redis", "from redis import exceptions", "redis")
            yield Plant(REDIS, f"{package}.planted_late", "def late():\n    import redis.asyncio", "redis")
        if not package.startswith("dedup.contrib.spark"):
            yield Plant(SPARK, f"{package}.planted_spark", "from pyspark import sql", "pyspark")
        if package.startswith("dedup"):
            yield Plant(CRAWLER, f"{package}.planted_crawler", "import crawler.demo", "crawler.demo")
        yield Plant(TESTS, f"{package}.planted_tests", "from tests import conftest", "tests")
    for at, floor in enumerate(FLOORS):
        above = [room for higher in FLOORS[:at] for room in higher]
        for room in floor:
            for other in [*above, *(beside for beside in floor if beside != room)]:
                folder = f"dedup.{room}" in PACKAGES
                module = f"dedup.{room}.planted_{other}" if folder else f"dedup.{room}"
                yield Plant(ONE_WAY, module, f"import dedup.{other}", f"dedup.{other}")
    yield Plant(ITSELF, "dedup", "from dedup.scrapy import addon", "dedup.scrapy.addon")


PLANTS = list(plants())


class Report(NamedTuple):
    """What `lint-imports` says of a folder: its exit status, and what stands under each broken contract."""

    status: int
    broken: dict[str, str]


def lint(folder: Path) -> Report:
    code = "from importlinter.cli import lint_imports_command as lint; lint(['--no-cache', '--no-logo'])"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False
    )
    _, *sections = re.split(
        r"^(.+)\n-+\n\n", done.stdout.partition("Broken contracts")[2], flags=re.MULTILINE
    )
    return Report(done.returncode, dict(zip(sections[::2], sections[1::2], strict=True)))


def copy(folder: Path) -> Path:
    """Copies the products into a folder."""
    for product in PRODUCTS:
        shutil.copytree(ROOT / product, folder / product, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """What is said of a copy with every plant in it, a new folder, and in every package two modules that import each other."""
    folder = copy(tmp_path_factory.mktemp("planted"))
    (folder / "dedup" / "attic").mkdir()
    (folder / "dedup" / "attic" / "__init__.py").touch()
    for plant in PLANTS:
        path = folder.joinpath(*plant.module.split("."))
        path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        with path.open("a") as file:
            file.write(f"\n{plant.line}\n")
    for package in PACKAGES:
        place = folder.joinpath(*package.split("."))
        (place / "planted_a.py").write_text(f"import {package}.planted_b\n")
        (place / "planted_b.py").write_text(f"import {package}.planted_a\n")
    return lint(folder)


def test_every_contract_can_be_broken(report: Report) -> None:
    assert report.status == 1
    assert report.broken.keys() == {contract["name"] for contract in SETTINGS["contracts"]}


@pytest.mark.parametrize("contract", [ONE_WAY, CRAWLER, SCRAPY, REDIS, ITSELF, TESTS])
def test_a_forbidden_import_is_reported(report: Report, contract: str) -> None:
    planted = {f"{plant.module} -> {plant.imported}" for plant in PLANTS if plant.contract == contract}
    assert planted
    assert planted <= set(re.findall(r"^-? +(\S+ -> \S+) \(", report.broken[contract], flags=re.MULTILINE))


def test_a_circle_is_reported(report: Report) -> None:
    assert set(re.findall(r"No cycles are allowed in (\S+)\.\n", report.broken[CIRCLES])) == {*PACKAGES}


def test_a_new_folder_has_to_be_given_its_floor(report: Report) -> None:
    assert "attic" in report.broken[ONE_WAY]


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Not even a package and what is in it, which the contracts allow."""
    graph = grimp.build_graph(*PRODUCTS, cache_dir=None)
    TopologicalSorter(
        {name: graph.find_modules_directly_imported_by(name) for name in graph.modules}
    ).prepare()  # raises CycleError, which names them
