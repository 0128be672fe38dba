"""Tells Prometheus the stats of a crawl while it runs, and what waits.  ``pip install 'shingleback[metrics]'``

``EXTENSIONS = {"dedup.scrapy.metrics.Metrics": 0}`` is all that a project needs.  Whatever may be counted is there from
the start, at 0, so that an alert sees the first one of its kind.
"""

import asyncio
import re
import time
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast, get_args

from scrapy import Spider
from scrapy.crawler import Crawler
from scrapy.http import Response

from dedup.errors import SettingsError
from dedup.filter.judges import BY_NAME
from dedup.index.verdict import Status
from dedup.page.urls import host
from dedup.scrapy.component import Component
from dedup.scrapy.crawl.crew import crew_of
from dedup.scrapy.judgement import outcome_of
from dedup.scrapy.signals import refuse
from dedup.settings import Action

if TYPE_CHECKING:
    from prometheus_client import Metric

    from dedup.filter import Filter

#: Hosts that have a label of their own; the pages of all that come later are those of "other".
HOSTS = 100
#: Why a page is kept unjudged.
REASONS = (
    "alarm asked_again audit binary carries empty hostile index internal_error large log outdated partial scripted short soft_404 "
    "truncated uncertain undecodable"
)
#: Stats of one family, by what tells them apart.
PARTED = {
    "unjudged": ("reason", REASONS),
    "skipped": ("reason", "by_the_filter inline method no_callback opted_out sent_again status type"),
    "judges": ("judge", " ".join(BY_NAME)),
    "canonical": ("whose", "agrees other own"),
    "late": ("outcome", "duplicate filed never"),
    "seconds": ("part", "claim fingerprint paused"),
}
#: The others, which only rise ...
COUNTED = (
    "alarms alarms/queries asked_again audit/checked audit/failed audit/wrong carries crowded depth/led_on dropped "
    "dropped/elsewhere duplicate equal_bodies fetched_again hosts/alarms hosts/dropped hosts/led_on "
    "items_left_out links/came_back links/harvested links/items_left_out links/parked "
    "links/weighed links_marked marked new no_vary_search not_followed not_modified not_modified_bytes off_host own_content own_content/host_unknown pages parked "
    "probe/failed probe/unknown probed probes same shard/handed_over shard/inherited shard/not_handed_over shard/not_noted shard/not_scheduled shard/taken "
    "shard/unreadable soft_404 soft_404/hosts uncertain unchanged"
)
#: ... and those that are set anew, or may fall.
MEASURED = (
    "audit/wrong_rate audit/wrong_rate_high audit/wrong_rate_low carries/different changes/not_seen links/waiting "
    "links_not_followed "
    "unreached unreached/contents unreached/contents_high unreached/contents_low unreached/failed unreached/new "
    "unreached/sampled"
)
#: What finds near-duplicates, as the drop log has it.
RULES = ("exact", "rare", "probe", "address", "no_vary_search", "soft_404")


class Metrics(Component):
    """Answers at METRICS_HOST (127.0.0.1) and METRICS_PORT (9410), from a thread of its own."""

    filter: "Filter | None" = None

    def __init__(self, crawler: Crawler) -> None:
        super().__init__(crawler)
        self._pages: Counter[tuple[str, str]] = Counter()  # by host and status
        self._drops: Counter[tuple[str, str]] = Counter()  # by rule and action
        self._last = time.time()
        self._hosts: set[str] = set()
        self._meet("other")

    def spider_opened(self, spider: Spider) -> None:
        """Begins to answer, or stops the crawl before any page."""
        settings = self.crawler.settings
        self._crew = crew_of(self.crawler)
        self._crew.is_watched = True
        where = settings.get("METRICS_HOST", "127.0.0.1"), settings.get("METRICS_PORT", 9410)
        try:
            from prometheus_client import CollectorRegistry, ProcessCollector, start_http_server

            registry = CollectorRegistry()
            ProcessCollector(registry=registry)  # memory and CPU
            registry.register(self)
            self._server, self._thread = start_http_server(int(where[1]), where[0], registry)
        except ImportError:
            refuse(self.crawler, SettingsError("Metrics need a package: pip install 'shingleback[metrics]'"))
        except (OSError, ValueError, OverflowError) as error:
            why = getattr(error, "strerror", None) or error
            text = f"METRICS_HOST is {where[0]!r} and METRICS_PORT {where[1]!r}, where nothing can be answered: {why}"
            refuse(self.crawler, SettingsError(f"{text}; give each worker a port of its own"))

    def filter_opened(self, filter: "Filter") -> None:
        """The filter is ready for the first page."""
        self.filter = filter
        for rule in dict.fromkeys((*RULES, filter.index.detector.method)):
            self._drops.update({(rule, action): 0 for action in get_args(Action)})

    def response_received(self, response: Response) -> None:
        """A page reaches the spider: it was kept, if it was judged at all."""
        outcome = outcome_of(response)
        if outcome is not None and outcome.record is None:
            self._count(response.url, outcome.verdict.status)

    def near_duplicate(self, response: Response, record: dict[str, Any]) -> None:
        """A page is a near-duplicate."""
        self._count(response.url, "duplicate")
        self._drops[record["rule"], record["action"]] += 1

    def _count(self, url: str, status: str) -> None:
        self._last = time.time()
        name = host(url)
        if name not in self._hosts and len(self._hosts) <= HOSTS:
            self._meet(name)
        self._pages[name if name in self._hosts else "other", status] += 1

    def _meet(self, name: str) -> None:
        self._hosts.add(name)
        self._pages.update({(name, status): 0 for status in get_args(Status)})

    def collect(self) -> "Iterator[Metric]":
        """Is called by Prometheus' client, in its thread."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        def parted(kind: Any, name: str, text: str, labels: list[str], values: dict[Any, float]) -> "Metric":
            family = kind(name, text, labels=labels)
            for label, value in values.items():
                family.add_metric(label, value)
            return cast("Metric", family)

        stats = dict(self.crawler.stats.get_stats()) if self.crawler.stats else {}
        counter, gauge = CounterMetricFamily, GaugeMetricFamily
        yield parted(counter, "dedup_host_pages", "Judged.", ["host", "status"], dict(self._pages))
        yield parted(counter, "dedup_near_duplicates", "Found.", ["rule", "action"], dict(self._drops))
        for name, (label, known) in PARTED.items():
            prefix = f"dedup/{name}/"
            found = {key.removeprefix(prefix): stats[key] for key in stats if key.startswith(prefix)}
            values = {(each,): value for each, value in (dict.fromkeys(known.split(), 0) | found).items()}
            yield parted(counter, f"dedup_{name}", f"The stats dedup/{name}.", [label], values)
        for kind, names in ((counter, COUNTED), (gauge, MEASURED)):
            for each in names.split():
                yield kind(_name(f"dedup/{each}"), f"The stats dedup/{each}.", stats.get(f"dedup/{each}", 0))
        others = {_name(f"scrapy/{name}"): name for name in stats if not name.startswith("dedup/")}
        for name, spelled in others.items():
            if isinstance(value := stats[spelled], (int, float)):
                yield gauge(name, f"The stats {spelled}.", value)
        yield from self._crew.gauges()
        yield gauge("dedup_last_page_seconds", "When a page was judged last, since 1970.", self._last)
        yield gauge("dedup_doubts", "Drops that may yet be undone.", self.filter.doubts if self.filter else 0)

    async def spider_closed(self, spider: Spider) -> None:
        """Answers no more."""
        if hasattr(self, "_server"):
            await asyncio.to_thread(self._server.shutdown)
            self._server.server_close()
            self._thread.join()


def _name(text: str) -> str:
    return re.sub("[^a-zA-Z0-9]", "_", text)
