"""`scrapy index forget`: takes pages out of the index, so that they will be claimed as new."""

import math
import re
from datetime import datetime

from dedup.droplog.record import moment
from dedup.errors import SettingsError
from dedup.index import Index
from dedup.index.entry import original_id
from dedup.index.lifecycle import CRAWL
from dedup.index.survey import BATCH
from dedup.printing import clock, inert, many
from dedup.scrapy.commands.index.access import WIDTH, page_id, surveyed
from dedup.scrapy.commands.terminal import complain, counting


async def forget_pages(index: Index, urls: list[str], run: str, older_than: str, dry_run: bool) -> int:
    """Forgets the pages of some URLs, of a run or all runs of a crawl, or filed before a time, and returns the exit status."""
    if run and not re.fullmatch(f"[0-9a-f]{{32}}|[0-9a-f]{{{CRAWL}}}", run):
        raise SettingsError(
            f"--run is '{inert(run, 60)}'; allowed: 32 hex digits, or the {CRAWL} of a crawl by many workers, as scrapy "
            "index info shows them"
        )
    before = _seconds(older_than) if older_than else math.inf
    ids, wanted = {page_id(url) for url in urls}, set(urls)
    found: list[str] = []
    matched = forgotten = unreadable = 0
    async with surveyed(index) as survey:
        if not dry_run:
            await index.open()
        with counting("Reading", await survey.count() if urls else None) as advance:
            async for entry, state in survey.pages(run=run if len(run) > CRAWL else "", before=before):
                advance()
                unreadable += entry is None
                if entry is None or not entry.run.startswith(run):
                    continue
                if urls and not (entry.page_id in ids or entry.url in wanted):
                    continue
                matched += 1
                if dry_run:
                    print(f"{clock(entry.filed)}  {state:7}  {entry.run}  {inert(entry.url, WIDTH)}")
                    continue
                found.append(original_id(entry.page_id))
                if len(found) == BATCH:
                    forgotten += await index.forget(found)
                    found.clear()
        if found:
            forgotten += await index.forget(found)
    done = f"would forget {many(matched, 'page')}" if dry_run else f"forgot {many(forgotten, 'page')}"
    print(f"{done} of {index.where}")
    if unreadable:
        left = f"{many(unreadable, 'page')} can't be read and were left in the index; see scrapy index check"
        complain("index", left)
    return 0


def _seconds(older_than: str) -> float:
    """Returns a time in seconds since 1970."""
    try:
        return datetime.fromisoformat(moment(older_than)).timestamp()
    except SettingsError as error:
        raise error.renamed(lambda _: "--older-than") from None
