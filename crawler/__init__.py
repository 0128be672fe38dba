"""The ready-to-run Scrapy project: settings, the spider `site`, its items, and a demo site."""
