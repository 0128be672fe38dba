"""What has become of a site since earlier crawls: new, changed, moved, hidden, gone; and what of it need not be sent again.

One SQLite file beside the index, `file`, keeps crawls and the versions of pages.  In a crawl, `listener` hears of the pages;
`changes` reads afterwards what has become of them.
"""
