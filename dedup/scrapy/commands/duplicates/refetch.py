"""Fetches dropped and kept pages again, for their words."""

from collections import Counter
from collections.abc import Callable, Collection

from scrapy.http import HtmlResponse, Response
from scrapy.settings import Settings

from dedup.fingerprint.detector import Detector
from dedup.page.limits import UNREADABLE
from dedup.page.urls import host
from dedup.printing import inert, many
from dedup.scrapy.commands.fetch import Door, Miss, fetch
from dedup.scrapy.commands.terminal import complain
from dedup.texts.texts import Text

#: The least seconds between two requests to a host, and the most seconds of all.
DELAY, SECONDS = 1.0, 900.0
#: At most this many hosts, and reasons why pages could not be fetched, are named.
SHOWN = 5
#: How long a name or a reason is that is shown.
WIDTH = 100


def refetch(
    urls: Collection[str], settings: Settings, detector: Detector, door: Door, done: Callable[[], object]
) -> dict[str, Text]:
    """Returns the texts of pages as they are now, by URL, without the pages that can't be fetched or read.

    ``done`` is called after each page.  Says which hosts are asked, and what could not be fetched.
    """
    words: dict[str, Text] = {}
    missed: Counter[Miss] = Counter()

    def received(url: str, response: Response) -> None:
        done()
        if isinstance(response, HtmlResponse):
            page = detector.read(response.text, response.url, lambda _: response.selector.root)
            if page.reason not in UNREADABLE:
                words[url] = Text(page.tokens, page.chrome, page.data)

    def failed(url: str, why: Miss) -> None:
        done()
        missed[why] += 1

    print(f"fetching {many(len(urls), 'page')} again, of {_hosts(urls)}", flush=True)
    delay = max(DELAY, settings.getfloat("DOWNLOAD_DELAY"))
    fetch(urls, settings, received, failed, door=door, seconds=SECONDS, delay=delay)
    for (why, refused), count in missed.most_common(SHOWN):
        hint = " (see --anywhere)" if refused else ""
        complain("duplicates", f"{many(count, 'page')} not fetched: {inert(why, WIDTH)}{hint}")
    if more := missed.total() - sum(count for _, count in missed.most_common(SHOWN)):
        complain("duplicates", f"{many(more, 'page')} not fetched for other reasons")
    return words


def _hosts(urls: Collection[str]) -> str:
    """Returns the hosts of URLs, those of the most URLs first."""
    hosts = Counter(host(url) or "?" for url in urls)
    names = ", ".join(inert(name, WIDTH) for name, _ in hosts.most_common(SHOWN))
    return names + (f" and {len(hosts) - SHOWN:,} other hosts" if len(hosts) > SHOWN else "")
