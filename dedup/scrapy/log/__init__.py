"""What Scrapy's log says of near-duplicates: a line for the first of them, one each minute, and a summary."""
