"""What a link is expected to bring: how often pages like it were new, as verdicts have taught.

Nothing here knows Scrapy, time or chance: the same verdicts in the same order give the same decisions.

>>> from dedup.links import Link, Links
>>> links = Links()
>>> for number in range(40):  # all pages of a mirror are near-duplicates
...     link = Link(f"http://a.org/mirror/page-{number}.html", found_on="http://a.org/mirror/")
...     if (doubt := links.doubt(link)) is None:
...         links.note(link)
...         worth_it_now = links.learn(link.url, new=False)
>>> doubt.group, doubt.judged, doubt.new, doubt.rate < doubt.least
('a.org/mirror/page-#.html', 5, 0, True)
"""

from dedup.links.address import Address
from dedup.links.parking import Link
from dedup.links.policy import Doubt, Links

__all__ = ["Address", "Doubt", "Link", "Links"]
