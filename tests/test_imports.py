"""What is loaded when: Scrapy imports our commands at every command of its own, so they have to be light."""

import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

import dedup
from tests.support import ROOT

COMMANDS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]["scrapy.commands"]

SCRAPY_LIST = """
import importlib.metadata, scrapy.cmdline
scrapy.cmdline.entry_points = (lambda group: []) if {without} else importlib.metadata.entry_points
try:
    scrapy.cmdline.execute(["scrapy", "list"])
except SystemExit as end:
    assert end.code == 0
"""


def loaded(folder: Path, *steps: str) -> list[set[str]]:
    """The modules that a program has loaded after each of its steps."""
    code = "".join(f"{step}\nimport sys; print('loaded', *sys.modules, file=sys.stderr)\n" for step in steps)
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=True
    )
    found = [{*line.split()[1:]} for line in done.stderr.splitlines() if line.startswith("loaded ")]
    assert len(found) == len(steps)
    return found


def libraries(modules: set[str]) -> set[str]:
    return {name.partition(".")[0] for name in modules} - sys.stdlib_module_names


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project of Scrapy's with the add-on in its settings."""
    (tmp_path / "scrapy.cfg").write_text("[settings]\ndefault = theirs.settings\n")
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "settings.py").write_text(
        'SPIDER_MODULES = ["theirs.spiders"]\nADDONS = {"dedup.scrapy.Addon": 500}\n'
    )
    (tmp_path / "theirs" / "spiders.py").write_text(
        "import scrapy\nclass Theirs(scrapy.Spider):\n    name = 'theirs'\n"
    )
    return tmp_path


def test_scrapy_list_loads_only_our_commands(project: Path) -> None:
    without, there = loaded(project, *(SCRAPY_LIST.format(without=without) for without in (True, False)))
    assert "dedup" not in libraries(without)
    modules = {target.partition(":")[0] for target in COMMANDS.values()}
    assert modules <= there
    assert libraries(there - without) == {"dedup"}
    packages = {
        ".".join(parts[:end])
        for parts in (name.split(".") for name in modules)
        for end in range(1, len(parts))
    }
    assert len(there - without - modules - packages) <= 10


def test_every_command_is_there() -> None:
    for target in COMMANDS.values():
        module, name = target.split(":")
        assert hasattr(import_module(module), name)


def test_the_package_alone_loads_its_errors_and_an_index_what_it_needs(tmp_path: Path) -> None:
    code = "from dedup import Detector, open_index; open_index('memory:', Detector(), scope='{}')"
    before, after, of_host, of_site = loaded(
        tmp_path, "", "import dedup", code.format("host"), code.format("site")
    )
    assert libraries(after - before) == {"dedup"}
    assert not {"tldextract", "requests", "redis"} & libraries(of_host)
    assert "tldextract" in libraries(of_site)  # the list of suffixes


def test_every_public_name_is_loaded_at_its_first_use() -> None:
    assert set(dedup.__all__) <= set(dir(dedup))
    for name in dedup.__all__:
        assert getattr(dedup, name).__name__ == name
    with pytest.raises(AttributeError, match="has no attribute 'Detecter'"):
        print(dedup.Detecter)


def test_a_crawl_loads_the_filter_if_it_is_on_and_not_what_only_some_crawls_need(project: Path) -> None:
    code = """
from scrapy.settings import Settings
from scrapy.utils.misc import load_object
from dedup.scrapy import Addon
class Theirs: ...
def load(is_on, kinds):
    settings = Settings({"DEDUP_ENABLED": is_on, "DOWNLOADER_MIDDLEWARES": {Theirs: 1}})
    Addon().update_settings(settings)
    print([load_object(component) for kind in kinds for component in settings.getdict(kind)])
"""
    crawl = """
from scrapy.crawler import AsyncCrawlerProcess
from scrapy.utils.project import get_project_settings
process = AsyncCrawlerProcess(get_project_settings())
process.crawl("theirs", start_urls=["data:text/html,<p>a page of a few words"])
process.start()
"""
    heavy = {"numpy", "dedup.filter", "dedup.index", "dedup.fingerprint"}
    all_kinds = ["EXTENSIONS", "SPIDER_MIDDLEWARES", "DOWNLOADER_MIDDLEWARES"]
    steps = ("load(False, {all_kinds})", "load(True, ['EXTENSIONS'])", "load(True, {all_kinds})")
    _, off, extensions, on, plain = loaded(
        project, code, *(step.format(all_kinds=all_kinds) for step in steps), crawl
    )
    assert not heavy & (off | extensions)
    assert heavy <= on
    assert "dedup.filter.filter" in plain
    rooms = {"links", "index.survey", "scrapy.links.middleware"}
    assert not plain & {f"dedup.{room}" for room in rooms}
    assert not [module for module in plain if module.startswith("dedup.contrib")]
    assert not {"itemadapter", "redis"} & libraries(plain)
    assert "difflib" not in plain


OLDER = """
import inspect, pkgutil, scrapy
from importlib import import_module
scrapy.version_info = (2, 13, 0)
import dedup.contrib, dedup.scrapy
CALLED = {"process_request", "process_response", "process_exception", "process_spider_output"}
rooms = [pkgutil.walk_packages(room.__path__, f"{room.__name__}.") for room in (dedup.contrib, dedup.scrapy)]
modules = {module.name for room in rooms for module in room}
for name in sorted(modules - {"dedup.contrib.spark", "dedup.scrapy.monitors"}):  # which need packages that may not be there
    for kind in vars(import_module(name)).values():
        if inspect.isclass(kind) and kind.__module__ == name:
            for method in CALLED & vars(kind).keys():
                if "spider" not in inspect.signature(vars(kind)[method], follow_wrapped=False).parameters:
                    print(kind, method)
"""


def test_an_older_scrapy_can_call_every_middleware_with_a_spider() -> None:
    done = subprocess.run([sys.executable, "-c", OLDER], capture_output=True, text=True, check=True)
    assert not done.stdout


def test_without_pyspark_one_line_says_what_is_missing(tmp_path: Path) -> None:
    code = "import sys; sys.modules['pyspark'] = None\nimport dedup.contrib.spark"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    last = done.stderr.splitlines()[-1]
    assert (
        last
        == "ImportError: dedup.contrib.spark needs PySpark, and Java 17: pip install 'shingleback[spark]'"
    )
