"""One crawl by many workers, in Scrapy: whose a request is, and how it is handed over (`dedup.frontier`)."""
