"""Random sites, spiders, settings and faults: a crawl with the filter hands over what it hands over without."""
