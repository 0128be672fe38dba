"""`scrapy duplicates --html`: where a report's words and thresholds come from, and how far it is."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from scrapy.settings import Settings

from dedup.droplog import course, texts
from dedup.droplog.drops import Drops
from dedup.droplog.records import Filter
from dedup.report.document import MAX_PAIRS, Source, check_target, report, write_report
from dedup.scrapy.commands.duplicates.refetch import refetch
from dedup.scrapy.commands.terminal import bar
from dedup.scrapy.settings import read_settings

__all__ = ["FETCHED", "make_report"]

#: Pairs of which the pages are fetched again: the least alike.
FETCHED = 100


def make_report(
    path: Path,
    drops: Drops,
    logs: Sequence[Path],
    read: int,
    wanted: Filter,
    settings: Settings | None = None,
) -> None:
    """Writes a report of drops; with settings, their pages are fetched again.  Raises `SettingsError`."""
    check_target(path)
    with ExitStack() as stack:
        beside = [there for log in logs if (there := _beside(log, texts.SUFFIX))]
        find, words = stack.enter_context(texts.stored(beside)), "stored" if beside else ""
        if settings is not None:
            find, words = _fetch(drops, settings), "fetched"
        source = Source(
            logs=[log.name for log in logs],
            read=read,
            chosen=_in_words(wanted),
            courses=[there for log in logs if (there := _beside(log, course.SUFFIX))],
            find=find,
            texts=words,
            watch=_watch,
        )
        write_report(path, report(drops, source))


def _beside(log: Path, suffix: str) -> Path | None:
    """What a crawl has written beside a log, which may have been gzipped since."""
    for name in (log.name, log.name.removesuffix(".gz")):
        if (there := log.with_name(name + suffix)).is_file():
            return there
    return None


def _in_words(wanted: Filter) -> str:
    conditions = (
        (wanted.host, f"the host {wanted.host}"),
        (wanted.of, f"the kept page {wanted.of}"),
        (wanted.min_distance, f"a distance of at least {wanted.min_distance}"),
        (wanted.max_resemblance < 1, f"a resemblance of at most {wanted.max_resemblance:g}"),
        (wanted.since, f"{wanted.since[:19].replace('T', ' ')} UTC and later"),
    )
    return ", ".join(words for given, words in conditions if given)


@contextmanager
def _progress(what: str, total: int) -> Iterator[Callable[[], object]]:
    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=bar(), transient=True) as progress:
        task = progress.add_task("", total=total)
        yield lambda: progress.advance(task)


def _watch(pairs: Sequence[int]) -> Iterable[int]:
    with _progress("Comparing", len(pairs)) as advance:
        for pair in pairs:
            yield pair
            advance()


def _fetch(drops: Drops, settings: Settings) -> texts.Find:
    pairs = sorted(drops.pairs(MAX_PAIRS), key=lambda pair: (pair.resemblance, -pair.distance))[:FETCHED]
    urls = dict.fromkeys(url for pair in pairs for url in (pair.duplicate_of, pair.url))
    usable = [url for url in urls if url.startswith(("http://", "https://")) and len(url) < texts.MAX_URL]
    with _progress("Fetching", len(usable)) as advance:
        words = refetch(usable, settings, read_settings(settings).detector.keep_urls, advance)
    return lambda url, simhash: words.get(url)
