"""Signals of the filter, to be connected like Scrapy's own (``crawler.signals.connect``)."""

#: A page was found to be a near-duplicate and dropped, or marked.  Arguments: response, request, record
#: (the object that was written to the drop log), spider.
near_duplicate = object()

#: The filter refused to start, or stopped the crawl.  Arguments: error (a `dedup.DedupError`).
filter_failed = object()
