"""Helpers that tests share: servers, stores, crawls, pages.  No test module imports another one."""

from pathlib import Path
from typing import Any

import pytest

#: The folder of the project.
ROOT = Path(__file__).parents[2]


def slow(*values: object) -> Any:
    """Parameters of a test that the default run leaves out."""
    return pytest.param(*values, marks=pytest.mark.slow)
