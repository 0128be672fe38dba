"""Crawls of tests take less time: for the outputs of each response Scrapy begins as many tasks as CONCURRENT_ITEMS says.

By default these are 100, which takes a quarter of the time of a crawl of small pages.  Pipelines still have several items at a time.
"""

from scrapy.settings import default_settings

default_settings.CONCURRENT_ITEMS = 4
