"""Many crawlers, one crawl: which hosts are whose, and how links get to the worker whose they are."""
