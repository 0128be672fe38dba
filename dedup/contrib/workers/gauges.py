"""What Prometheus is told of the workers of a crawl."""

import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prometheus_client import Metric


def gauges(shards: Sequence[tuple[int, int]], waiting: int, beaten: float) -> "Iterator[Metric]":
    """Yields the leases of all ``shards`` and the links that wait for each, as `Beat.shards`, the links ``waiting`` here, and
    the silence since Redis has ``beaten``.
    """
    from prometheus_client.core import GaugeMetricFamily as Gauge

    links = Gauge(
        "dedup_shard_links_waiting", "Links that wait for a shard that nobody crawls.", labels=["shard"]
    )
    leases = Gauge("dedup_shard_lease_seconds", "Until the lease of a shard ends.", labels=["shard"])
    for number, (lease, count) in enumerate(shards, start=1):
        leases.add_metric([str(number)], lease / 1000)
        links.add_metric([str(number)], count)
    yield from (links, leases)
    yield Gauge("dedup_outbox_links", "Links that wait here to be handed over.", waiting)
    silence = time.time() - beaten
    yield Gauge("dedup_silence_seconds", "Since the Redis of the workers has answered.", silence)
