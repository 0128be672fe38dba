"""The policy of a crawl: what becomes of a page, its claim and its verdict."""
