"""Tests that are run in forks are told of as those that are not, and one whose process dies has failed."""

import os
import subprocess
from pathlib import Path

from tests.support import ROOT
from tests.support.warm import python

TESTS = """
import os, pytest

@pytest.mark.parametrize("number", range(3))
def test_number(number, tmp_path):
    (tmp_path / "file").write_text("it can be written")
    print(f"this is {number}")
    assert number < 2

@pytest.mark.skip(reason="it is left out")
def test_that_is_skipped(): pass
"""
DEADLY = """
import os

def test_before(): pass
def test_that_dies(): os.kill(os.getpid(), 9)
def test_behind_it(): pass
"""


def run(folder: Path, *options: str) -> str:
    command = [python(), "-m", "pytest", "-q", "-ra", "-c", "/dev/null", "--rootdir", str(folder)]
    command += ["-p", "tests.support.forks", "--forks", "2", "-p", "no:cacheprovider", *options, str(folder)]
    wide = os.environ | {"COLUMNS": "1000"}
    done = subprocess.run(command, cwd=ROOT, env=wide, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    return done.stdout


def test_every_test_is_told_of_once_and_one_whose_process_dies_has_failed(tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f"test_{number}.py").write_text(TESTS)
    (tmp_path / "test_deadly.py").write_text(DEADLY)
    printed = run(tmp_path)
    assert "5 failed, 7 passed, 3 skipped" in printed
    assert printed.count("this is 2") == 3
    assert "this is 1" not in printed
    for name in ("test_that_dies", "test_behind_it"):
        assert f"test_deadly.py::{name} - It has not come to its end" in printed


def test_after_a_failure_that_ends_all_no_more_is_run(tmp_path: Path) -> None:
    for number in range(40):
        (tmp_path / f"test_{number:02}.py").write_text("def test_it(): assert False")
    failed = run(tmp_path, "-x").count("FAILED")
    assert failed == 1
