"""What is written about the project is true: settings, exports, scripts, and no secret dependence."""

import runpy
import subprocess
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from pkgutil import walk_packages
from shutil import which
from subprocess import PIPE

import pytest

import crawler
import dedup
from dedup.fingerprint.methods import METHODS
from dedup.index import STORES
from dedup.index.redis.scripts import VERBS
from dedup.settings import GROUPS, PROFILES, SETTINGS
from dedup.values import Choice
from tests.support import ROOT
from tests.support.written import WRITTEN, sections

#: Modules for users of another package, with which alone they can be imported: `make companions` and `make spark` do.
ELSEWHERE = ("dedup.scrapy.monitors", "dedup.contrib.spark")

# --- Settings: everything that is said of them agrees with `dedup.settings` -----------------------------


@pytest.mark.parametrize("path", WRITTEN)
def test_what_is_written_of_settings_comes_from_their_table(path: str) -> None:
    text = (ROOT / path).read_text()
    assert WRITTEN[path](text) == text, "make settings"


def test_the_reference_says_when_to_change_each_setting() -> None:
    found = sections((ROOT / "docs" / "reference.md").read_text())
    assert found.keys() == SETTINGS.keys()
    assert [*found][:4] == ["action", "index", "incremental", "log"]  # what a newcomer needs comes first
    assert [name for name, text in found.items() if "- Example: " not in text] == []


def test_the_project_changes_no_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DEDUP_INDEX", raising=False)
    monkeypatch.delenv("DEDUP_HASH_KEY", raising=False)
    values = runpy.run_path(str(ROOT / "crawler" / "settings.py"))
    project = {name: value for name, value in values.items() if name.startswith("DEDUP_")}
    by_profiles = {
        name for profile in PROFILES.values() for name in profile
    }  # set here, no profile would count
    assert project == {
        f"DEDUP_{name.upper()}": each.default for name, each in SETTINGS.items() if name not in by_profiles
    }


def test_each_setting_is_in_one_group_and_each_method_and_store_can_be_set() -> None:
    assert len(SETTINGS) == sum(len(group.settings()) for group in GROUPS)
    kind = SETTINGS["method"].kind
    assert isinstance(kind, Choice)
    assert kind.values == tuple(METHODS)
    assert str(SETTINGS["index"].kind) == ", ".join(repr(store.address) for store in STORES.values())


# --- The project ---------------------------------------------------------------------------------------


def test_the_index_can_be_named_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEDUP_INDEX", "redis://redis:6379/0")
    values = runpy.run_path(str(ROOT / "crawler" / "settings.py"))
    assert values["DEDUP_INDEX"] == "redis://redis:6379/0"


def test_what_modules_export_is_there() -> None:
    for package in (dedup, crawler):
        for found in walk_packages(package.__path__, f"{package.__name__}."):
            if found.name.endswith("__main__"):
                continue
            try:
                module = import_module(found.name)
            except ImportError:
                assert found.name.startswith(ELSEWHERE)
                continue
            assert module.__doc__, found.name
            assert all(hasattr(module, name) for name in getattr(module, "__all__", [])), found.name


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """A PATH on which there are no browser and no Redis, an apt-get that says what it is told, and root."""
    for program in ("make", "sh"):
        (tmp_path / program).symlink_to(which(program) or "")
    for program, does in {"apt-get": 'echo "apt-get is told to $*"', "id": "echo 0"}.items():
        (tmp_path / program).write_text(f"#!/bin/sh\n{does}\n")
        (tmp_path / program).chmod(0o755)
    return tmp_path


def make(*arguments: str, path: Path) -> str:
    """What `make` prints in the project."""
    return subprocess.run(
        [path / "make", "-s", *arguments],
        cwd=ROOT,
        env={"PATH": str(path)},
        check=True,
        stdout=PIPE,
        text=True,
    ).stdout


def test_make_test_says_what_it_installs_before_it_does(bare: Path) -> None:
    update, install = (
        "apt-get update -qq",
        "apt-get install -y -qq --no-install-recommends redis-server chromium",
    )
    assert make("system", path=bare).splitlines() == [
        "Not installed: redis-server chromium",
        f"Installing (make test SYSTEM=no does without): {update} && {install}",
        update.replace("apt-get", "apt-get is told to"),
        install.replace("apt-get", "apt-get is told to"),
    ]


@pytest.mark.parametrize("system", ["no", ""])
def test_make_test_installs_nothing_where_it_must_not_or_can_not(bare: Path, system: str) -> None:
    if not system:
        (bare / "apt-get").unlink()
    assert make("system", f"SYSTEM={system}", path=bare).splitlines() == [
        "Not installed: redis-server chromium",
        "The tests that need them will be skipped.",
    ]


def test_make_test_installs_nothing_that_is_there(bare: Path) -> None:
    for program in ("valkey-server", "google-chrome"):
        (bare / program).symlink_to(bare / "apt-get")
    assert make("system", path=bare) == ""


def test_the_lua_scripts_are_installed_with_the_package() -> None:
    scripts = {script.name: script for script in files("dedup.index.redis").joinpath("lua").iterdir()}
    assert {f"{verb}.lua" for verb in VERBS} < scripts.keys()
    for verb in VERBS:
        assert scripts[f"{verb}.lua"].read_text().startswith(f"-- {verb}(KEYS = ")


def test_nothing_lies_about() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("this is no checkout")
    assert {Path(name).parts[0] for name in listed.stdout.splitlines()} == {
        *(".ci", ".github", ".gitignore", ".pre-commit-config.yaml", "Makefile", "MANIFEST.in"),
        *("pyproject.toml", "setup.py", "scrapy.cfg"),
        *("Dockerfile", ".dockerignore", "docker-compose.yml", "kubernetes.yaml"),
        *("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "docs", "CITATION.cff", "SECURITY.md"),
        *("dedup", "crawler", "tests", "benchmarks"),
    }
