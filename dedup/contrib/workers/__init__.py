"""One crawl by many workers: whose a host is, and how links to the hosts of others are handed over to them.

Without Scrapy: `partition` says whose a host is, and `handover` is the protocol in Redis.
"""
