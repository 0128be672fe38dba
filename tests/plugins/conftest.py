"""The tests in this folder run on other versions of Scrapy, and beside other packages: see `make plugin`."""

from pathlib import Path

import pytest

from tests.support.projects import project  # noqa: F401

HERE = f"{Path(__file__).parent}/"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if str(item.path).startswith(HERE):
            item.add_marker("companions" if "companions" in item.path.parts else "plugins")
