"""Links in Scrapy: what is parked, how it comes back, and how near-duplicates are harvested (`dedup.links` decides)."""
