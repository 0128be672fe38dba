"""A monitor for spidermon, which alone this module needs: whether a crawl has dropped too many of its pages."""

from spidermon import Monitor, monitors


@monitors.name("Near-duplicates")
class NearDuplicateMonitor(Monitor):  # type: ignore[misc] # spidermon has no types
    """Fails if the share of dropped pages is greater than `max_share`; a subclass may set another."""

    #: Of the pages that were judged; those that were fetched again count twice.
    max_share = 0.4

    def test_share_of_dropped_pages(self) -> None:
        """Called by spidermon when the spider is closed."""
        pages = self.data.stats.get("dedup/pages", 0)
        dropped = self.data.stats.get("dedup/dropped", 0)
        if dropped > self.max_share * pages:
            self.fail(
                f"{dropped:,} of {pages:,} pages ({dropped / pages:.0%}) were dropped as near-duplicates; "
                f"{self.max_share:.0%} are allowed"
            )
