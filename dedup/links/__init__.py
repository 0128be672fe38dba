"""What a link is expected to bring: how many of the pages in its folder were new, as verdicts have taught.

Nothing here knows Scrapy, time or chance: the same verdicts in the same order give the same decisions.

>>> from dedup.links import Link, Links
>>> links = Links()
>>> for number in range(100):  # all pages of a mirror are near-duplicates
...     link = Link(f"http://a.org/mirror/page-{number}.html", found_on="http://a.org/mirror/")
...     if (doubt := links.doubt(link)) is None:
...         links.note(link)
...         worth_it_now = links.learn(link.url, new=False)
>>> doubt.folder, doubt.judged, doubt.new, doubt.rate < 0.05
('a.org/mirror/', 9, 0, True)
"""

from dedup.links.parking import Link
from dedup.links.policy import Doubt, Links

__all__ = ["Doubt", "Link", "Links"]
