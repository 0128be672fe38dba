"""What the pages of a site said, crawl after crawl: one SQLite file beside the index.

`file` keeps crawls and the versions of pages, and `changes` says what has become of a site since an earlier crawl.
"""
