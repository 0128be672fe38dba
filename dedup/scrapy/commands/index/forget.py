"""`scrapy index forget`: pages are taken out, and will be claimed as new."""

import re
import sys
from datetime import UTC, datetime

from dedup.droplog.record import moment
from dedup.errors import SettingsError
from dedup.index import Entry, Index
from dedup.index.survey import BATCH
from dedup.printing import inert
from dedup.scrapy.commands.index.surveyed import WIDTH, page_id, surveyed
from dedup.scrapy.commands.terminal import counting

__all__ = ["forget"]


async def forget(index: Index, urls: list[str], run: str, older_than: str, dry_run: bool) -> int:
    """Forgets the pages of some URLs, or of a run, or filed before a time; the exit status."""
    ids = {page_id(url) for url in urls}
    wanted_urls = set(urls)
    if run and not re.fullmatch("[0-9a-f]{32}", run):
        raise SettingsError(
            f"--run is '{inert(run, 60)}'; allowed: 32 hex digits, as scrapy index info shows them"
        )
    before = _seconds(older_than) if older_than else 0.0

    def wanted(entry: Entry) -> bool:
        if run or older_than:
            return entry.run == run or entry.filed < before
        return entry.page_id in ids or entry.url in wanted_urls

    found: list[str] = []
    matched = forgotten = unreadable = 0
    async with surveyed(index) as survey:
        if not dry_run:
            await index.open()
        with counting("Reading", await survey.count()) as advance:
            async for entry, state in survey.pages():
                advance()
                unreadable += entry is None
                if entry is None or not wanted(entry):
                    continue
                matched += 1
                if dry_run:
                    time = datetime.fromtimestamp(entry.filed, UTC).isoformat(sep=" ")[:16]
                    print(f"{time}  {state:7}  {entry.run}  {inert(entry.url, WIDTH)}")
                    continue
                found.append(entry.page_id)
                if len(found) == BATCH:
                    forgotten += await index.forget(found)
                    found.clear()
        if found:
            forgotten += await index.forget(found)
    count = matched if dry_run else forgotten
    print(
        f"{'would forget' if dry_run else 'forgot'} {count:,} page{'' if count == 1 else 's'} of {index.where}"
    )
    if unreadable:
        print(
            f"index: {unreadable:,} pages can't be read, and were left: see scrapy index check",
            file=sys.stderr,
        )
    return 0


def _seconds(older_than: str) -> float:
    """A time in seconds since 1970."""
    try:
        return datetime.fromisoformat(moment(older_than)).timestamp()
    except SettingsError as error:
        raise SettingsError(f"--older-than{str(error).removeprefix('since')}") from None
