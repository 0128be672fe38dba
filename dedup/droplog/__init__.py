"""The log of dropped pages, in both directions, and the files beside it.

`record` has the fields; `log` writes and `reader` reads; `drops` sums up what is read.  `course` and `texts` are
each a file beside the log: how a crawl went on, and what its pages said.
"""
