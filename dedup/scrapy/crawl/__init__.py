"""One crawl: what opens its filter, what of Scrapy's engine the filter needs, and who works at it."""
