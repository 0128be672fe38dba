"""`scrapy duplicates --html`: finds the words and thresholds for a report, or fetches the pages again for their words."""

from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from scrapy.http import HtmlResponse, Response
from scrapy.settings import Settings

from dedup.droplog import course
from dedup.droplog.drops import Drops
from dedup.droplog.reader import find_beside
from dedup.droplog.record import Filter
from dedup.page.limits import UNREADABLE
from dedup.page.urls import host
from dedup.printing import clock, inert, many
from dedup.report.document import MAX_PAIRS, Source, doubt, report
from dedup.report.file import write_report
from dedup.scrapy.commands.fetch import Door, Miss, fetch
from dedup.scrapy.commands.terminal import complain, counting, each
from dedup.scrapy.places import histories
from dedup.scrapy.settings import read_settings
from dedup.texts import texts

#: The number of pairs, the least alike, whose pages are fetched again.
FETCHED = 100
#: The least seconds between two requests to a host, and the most seconds of all.
DELAY, SECONDS = 1.0, 900.0
#: At most this many hosts, and reasons why pages could not be fetched, are named, each in so many characters.
SHOWN, WIDTH = 5, 100


def make_report(
    path: Path,
    drops: Drops,
    logs: Sequence[Path],
    read: int,
    wanted: Filter,
    settings: Settings,
    door: Door | None,
    renewed: float = 0,
) -> None:
    """Writes a report of the drops in some logs.  Raises `SettingsError`.

    ``read`` is the number of records in the logs; the drops are those that were ``wanted``.  With a door, pages are
    fetched again by the settings of the project.  ``renewed`` is the number of seconds to the next report.
    """
    with ExitStack() as stack:
        beside = [found for log in logs if (found := find_beside(log, texts.SUFFIX))]
        find = stack.enter_context(texts.stored([*beside, *histories(settings)]))
        words = "stored" if beside or _knows(find, drops) else ""
        if door is not None:
            find, words = _fetch(drops, settings, door), "fetched"
        source = Source(
            logs=[log.name for log in logs],
            read=read,
            chosen=_in_words(wanted),
            renewed=renewed,
            courses=[found for log in logs if (found := find_beside(log, course.SUFFIX))],
            find=find,
            texts=words,
            watch=lambda pairs: each(pairs, "Comparing"),
        )
        write_report(path, report(drops, source))


def _knows(find: texts.Find, drops: Drops) -> bool:
    return any(find(pair["url"], pair["simhash"]) for pair in drops.pairs(FETCHED))


def _in_words(wanted: Filter) -> str:
    conditions = (
        (wanted.host, f"the host {wanted.host}"),
        (wanted.url, f"the dropped page {wanted.url}"),
        (wanted.of, f"the kept page {wanted.of}"),
        (wanted.min_distance, f"a distance of at least {wanted.min_distance}"),
        (wanted.max_resemblance < 1, f"a resemblance of at most {wanted.max_resemblance:g}"),
        (wanted.since, f"a time from {clock(wanted.since, seconds=True)} UTC on"),
    )
    return ", ".join(words for given, words in conditions if given)


def _fetch(drops: Drops, settings: Settings, door: Door) -> texts.Find:
    """Fetches the least alike pairs again; says which hosts are asked, and what could not be fetched."""
    pairs = sorted(drops.pairs(MAX_PAIRS), key=doubt)[:FETCHED]
    named = dict.fromkeys(url for pair in pairs for url in (pair["duplicate_of"], pair["url"]))
    urls = [url for url in named if url.startswith(("http://", "https://")) and len(url) < texts.MAX_URL]
    detector = read_settings(settings).detector
    words: dict[str, texts.Text] = {}
    missed: Counter[Miss] = Counter()

    def received(url: str, response: Response) -> None:
        done()
        if isinstance(response, HtmlResponse):
            page = detector.read(response.text, response.url, lambda _: response.selector.root)
            if page.reason not in UNREADABLE:
                words[url] = texts.Text(page.tokens, page.chrome, page.data)

    def failed(url: str, why: Miss) -> None:
        done()
        missed[why] += 1

    with counting("Fetching", len(urls), least=0) as done:
        print(f"fetching {many(len(urls), 'page')} again, of {_hosts(urls)}", flush=True)
        delay = max(DELAY, settings.getfloat("DOWNLOAD_DELAY"))
        fetch(urls, settings, received, failed, door=door, seconds=SECONDS, delay=delay)
    for (why, refused), count in missed.most_common(SHOWN):
        hint = " (see --anywhere)" if refused else ""
        complain("duplicates", f"{many(count, 'page')} not fetched: {inert(why, WIDTH)}{hint}")
    if more := missed.total() - sum(count for _, count in missed.most_common(SHOWN)):
        complain("duplicates", f"{many(more, 'page')} not fetched for other reasons")
    return lambda url, simhash: words.get(url)


def _hosts(urls: Sequence[str]) -> str:
    hosts = Counter(host(url) or "?" for url in urls)
    names = ", ".join(inert(name, WIDTH) for name, _ in hosts.most_common(SHOWN))
    return names + (f" and {len(hosts) - SHOWN:,} other hosts" if len(hosts) > SHOWN else "")
