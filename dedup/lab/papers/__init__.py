"""Methods of the source papers that no crawl uses, each with its source."""
