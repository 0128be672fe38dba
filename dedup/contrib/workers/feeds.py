"""The feeds of a worker whose pages are not fetched again when it has died: what was exported has to be in their files."""

import os
from typing import Any
from urllib.parse import urlsplit

from scrapy.crawler import Crawler
from scrapy.extensions.feedexport import FeedExporter
from scrapy.settings import BaseSettings

from dedup.errors import SettingsError

#: Formats in which an item is a line.
LINES = {"jsonlines", "jsonl", "jl", "csv"}


def check_feeds(settings: BaseSettings) -> None:
    """Refuses feeds that a worker which is killed would not leave, or the next would spoil.  Raises `SettingsError`."""
    for uri, options in _feeds(settings).items():
        scheme = urlsplit(str(uri)).scheme
        if scheme == "stdout":
            continue
        if len(scheme) > 1 and scheme != "file":
            why = "but this feed is stored when the crawl ends, so that a worker which is killed leaves nothing; name a file"
        elif options.get("postprocessing"):
            why = "but the postprocessing of this feed holds back what was exported; leave it out"
        elif "%(time)s" not in str(uri):
            why = "but the next worker would write into this feed, too; put %(time)s into its name"
        else:
            continue
        raise SettingsError(name="heir", value="rest", others={"FEEDS": str(uri)}, why=why)


def are_on_disk(settings: BaseSettings) -> bool:
    """Returns whether items are seen to be in one file each feed, whole, when a worker is killed: in lines, by no pipeline."""
    feeds = _feeds(settings)
    if not feeds or settings.getdict("ITEM_PIPELINES"):
        return False
    try:
        check_feeds(settings)
    except SettingsError:
        return False
    batch = settings.getint("FEED_EXPORT_BATCH_ITEM_COUNT")
    return all(
        options.get("format") in LINES and uri != "stdout:" and not options.get("batch_item_count", batch)
        for uri, options in feeds.items()
    )


def _feeds(settings: BaseSettings) -> dict[str, dict[str, Any]]:
    return settings.getdict("FEEDS") or {each: {} for each in [settings.get("FEED_URI")] if each}


def flush_feeds(crawler: Crawler) -> set[str]:
    """Has what was exported written to the files, and returns their paths.  Raises OSError."""
    exporter = crawler.get_extension(FeedExporter)
    files = [slot.file for slot in exporter.slots if slot.file is not None] if exporter is not None else []
    for file in files:
        if not file.closed:
            file.flush()
    return {os.path.abspath(file.name) for file in files if isinstance(getattr(file, "name", None), str)}
