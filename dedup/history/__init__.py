"""What the pages of a site said, crawl after crawl: one SQLite file beside the index.

`texts` keeps words small, `file` keeps crawls and the versions of pages, `differences` says what differs between two, and
`changes` what has become of a site since an earlier crawl.
"""

#: The first digits of a run are those of its crawl, all of whose workers have them.
CRAWL = 16
