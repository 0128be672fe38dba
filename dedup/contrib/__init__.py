"""What stands beside the filter of a crawl: each folder is imported only when it is used, and core imports none."""
