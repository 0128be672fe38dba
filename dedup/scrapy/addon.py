"""The add-on: ``ADDONS = {"dedup.scrapy.Addon": 500}`` is the whole installation."""

from scrapy.settings import BaseSettings

__all__ = ["Addon"]

#: The first comes before decompression (590), the second between that and meta refreshes (580), which read the
#: text.
WHOLENESS_ORDER = 595
CHARSET_ORDER = 585
#: It is next to the engine, so that what it judges is what the spider will get: the middlewares of a project, at 543
#: for example, may have taken a page for a ban, and sent its request again.
DOWNLOADER_ORDER = 0
#: Still nearer: it parks what has left the scheduler before anything else is done with it, and learns from verdicts.
LINKS_ORDER = -1
#: It is next to the engine, so that it sees a page's whole output handed over.
SPIDER_ORDER = 10
#: It is next to the spider: what gets there has been refused by no other middleware.
ARRIVAL_ORDER = 1_000_000
#: Still nearer: it takes note of the requests that are handed over.
HARVEST_ORDER = 9
#: Of the workers of a crawl: next to the engine, so that it sees the start requests that are to be scheduled, and next
#: to the downloader, so that what it lets pass is sent.
START_ORDER = 5
DOOR_ORDER = 1_000_000


class Addon:
    """Puts middlewares and extensions into their places, and the stats into Scrapy's periodic log."""

    def update_settings(self, settings: BaseSettings) -> None:
        """Called by Scrapy.  A project that has given them other places, or has its own periodic log, keeps those."""
        from dedup.scrapy.settings import is_enabled, is_sharded

        if is_sharded(settings):
            from dedup.scrapy.shards import ShardMiddleware, ShardStartMiddleware

            settings.setdefault_in_component_priority_dict(
                "DOWNLOADER_MIDDLEWARES", ShardMiddleware, DOOR_ORDER
            )
            settings.setdefault_in_component_priority_dict(
                "SPIDER_MIDDLEWARES", ShardStartMiddleware, START_ORDER
            )
        if not is_enabled(settings):
            return  # and nothing of it is loaded

        from scrapy.extensions.periodic_log import PeriodicLog

        from dedup.scrapy.bodies import CharsetMiddleware, WholenessMiddleware
        from dedup.scrapy.confirm import ArrivalMiddleware, ConfirmMiddleware
        from dedup.scrapy.extensions import KeepText, Timeline
        from dedup.scrapy.harvest import HarvestMiddleware
        from dedup.scrapy.links import LinksMiddleware
        from dedup.scrapy.middleware import NearDuplicateMiddleware
        from dedup.scrapy.queues import warn_of_queue

        for name, component, order in (
            ("DOWNLOADER_MIDDLEWARES", WholenessMiddleware, WHOLENESS_ORDER),
            ("DOWNLOADER_MIDDLEWARES", CharsetMiddleware, CHARSET_ORDER),
            ("DOWNLOADER_MIDDLEWARES", NearDuplicateMiddleware, DOWNLOADER_ORDER),
            ("DOWNLOADER_MIDDLEWARES", LinksMiddleware, LINKS_ORDER),
            ("SPIDER_MIDDLEWARES", ConfirmMiddleware, SPIDER_ORDER),
            ("SPIDER_MIDDLEWARES", ArrivalMiddleware, ARRIVAL_ORDER),
            ("SPIDER_MIDDLEWARES", HarvestMiddleware, HARVEST_ORDER),
            ("EXTENSIONS", Timeline, 0),
            ("EXTENSIONS", KeepText, 0),
        ):
            settings.setdefault_in_component_priority_dict(name, component, order)
        warn_of_queue(settings)
        if not settings.get("PERIODIC_LOG_STATS"):
            settings.set("PERIODIC_LOG_STATS", {"include": ["dedup/"]}, priority="addon")
            settings.setdefault_in_component_priority_dict("EXTENSIONS", PeriodicLog, 0)
