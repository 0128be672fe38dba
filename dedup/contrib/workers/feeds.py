"""The feeds of a worker whose pages are not fetched again when it has died: what was exported has to be in their files."""

from urllib.parse import urlsplit

from scrapy.crawler import Crawler
from scrapy.extensions.feedexport import FeedExporter
from scrapy.settings import BaseSettings

from dedup.errors import SettingsError


def check_feeds(settings: BaseSettings) -> None:
    """Refuses feeds that a worker which is killed would not leave, or the next would spoil.  Raises `SettingsError`."""
    feeds = settings.getdict("FEEDS") or {each: {} for each in [settings.get("FEED_URI")] if each}
    for uri, options in feeds.items():
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


def flush_feeds(crawler: Crawler) -> None:
    """Has what was exported written to the files.  Raises OSError."""
    exporter = crawler.get_extension(FeedExporter)
    for slot in exporter.slots if exporter is not None else ():
        if slot.file is not None and not slot.file.closed:
            slot.file.flush()
