"""Many crawlers, one crawl: which worker has which hosts, and how links get to it."""
