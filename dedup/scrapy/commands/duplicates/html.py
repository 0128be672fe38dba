"""`scrapy duplicates --html`: finds the words and thresholds for a report."""

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from scrapy.settings import Settings

from dedup.droplog import course
from dedup.droplog.drops import Drops
from dedup.droplog.reader import find_beside
from dedup.droplog.record import Filter
from dedup.printing import clock
from dedup.report.document import Source, report
from dedup.report.file import write_report
from dedup.scrapy.commands.terminal import each
from dedup.scrapy.places import histories
from dedup.texts import texts

#: Pairs of which one has to have its texts stored, for the report to show what differs.
LOOKED_AT = 100


def make_report(
    path: Path,
    drops: Drops,
    logs: Sequence[Path],
    read: int,
    wanted: Filter,
    settings: Settings,
    renewed: float = 0,
) -> None:
    """Writes a report of the drops in some logs.  Raises `SettingsError`.

    ``read`` is the number of records in the logs; the drops are those that were ``wanted``.  ``renewed`` is the number
    of seconds to the next report.
    """
    with ExitStack() as stack:
        beside = [found for log in logs if (found := find_beside(log, texts.SUFFIX))]
        find = stack.enter_context(texts.stored([*beside, *histories(settings)]))
        source = Source(
            logs=[log.name for log in logs],
            read=read,
            chosen=_in_words(wanted),
            renewed=renewed,
            courses=[found for log in logs if (found := find_beside(log, course.SUFFIX))],
            find=find,
            has_texts=bool(beside) or _knows(find, drops),
            watch=lambda pairs: each(pairs, "Comparing"),
        )
        write_report(path, report(drops, source))


def _knows(find: texts.Find, drops: Drops) -> bool:
    return any(find(pair["url"], pair["simhash"]) for pair in drops.pairs(LOOKED_AT))


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
