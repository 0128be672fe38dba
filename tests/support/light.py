"""Crawls of tests take less time: for the outputs of each response Scrapy begins as many tasks as CONCURRENT_ITEMS says.

By default these are 100, which takes a quarter of the time of a crawl of small pages.  Pipelines still have several items at a time.
And each crawl copies its settings several times, one by one: most of them are numbers or names, which need no copy.
"""

from copy import deepcopy
from typing import Any

from scrapy.settings import SettingsAttribute, default_settings

default_settings.CONCURRENT_ITEMS = 4


def _copy_of(self: SettingsAttribute, memo: dict[int, Any]) -> SettingsAttribute:
    is_fixed = self.value is None or type(self.value) in {bool, int, float, str}
    copied = SettingsAttribute.__new__(SettingsAttribute)
    copied.value, copied.priority = self.value if is_fixed else deepcopy(self.value, memo), self.priority
    return copied


SettingsAttribute.__deepcopy__ = _copy_of  # type: ignore[attr-defined]
