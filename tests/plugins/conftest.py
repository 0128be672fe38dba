"""The tests in this folder run on other versions of Scrapy, and beside other packages: see `make plugin`."""

from pathlib import Path

import pytest

from tests.support.projects import project  # noqa: F401

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker("companions" if "companions" in item.path.parts else "plugins")
