"""The commands that Scrapy offers where this library is installed."""
