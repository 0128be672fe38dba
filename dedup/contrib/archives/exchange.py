"""Judges pages also by the index of a crawl, and files what was kept there at the end.

Until everything is written, that index is only read.  Then the kept pages are filed in it as those of an earlier run.  So
a crawl that runs meanwhile drops no page because of the archive.
"""

from collections.abc import Callable

from dedup.contrib.archives.judging import SEED
from dedup.errors import SettingsError
from dedup.fingerprint.chrome import Chrome
from dedup.index import Entry, Index
from dedup.index.lifecycle import State
from dedup.index.survey import BATCH, Survey

#: Tables of hosts that are merged at once.
HOSTS = 50


async def check(other: Index, *, is_there: bool) -> None:
    """Raises `DedupError` if an index can't be read, or if it has to be there and is not."""
    try:
        if survey := await other.survey():
            await survey.close()
        elif is_there:
            raise SettingsError(
                f"--against is {other.where}, where no index is; give one that a crawl has made"
            )
    finally:
        await other.close()


async def seed(index: Index, other: Index) -> int:
    """Files all that another index holds, and returns how many pages that were."""
    try:
        survey = await other.survey()
        if survey is None:
            return 0
        async with survey:
            await _merge(survey, index)
            return await _add(
                survey, index, lambda entry: entry._replace(page_id=SEED + entry.page_id, run=index.run)
            )
    finally:
        await other.close()


async def file(survey: Survey, other: Index, page_id: Callable[[str], str | None]) -> int:
    """Files the pages of a survey in another index, by the ids that crawls give to URLs.

    Returns how many were new there.  A page that it has at the same URL already is left unchanged.
    """

    def as_met_by_a_crawl(entry: Entry) -> Entry | None:
        own = None if entry.page_id.startswith(SEED) else page_id(entry.url)
        return entry._replace(page_id=own) if own else None

    try:
        await _merge(survey, other)
        return await _add(survey, other, as_met_by_a_crawl)
    finally:
        await other.close()


async def _merge(survey: Survey, index: Index) -> None:
    tables: dict[str, Chrome] = {}
    async for name, table in survey.hosts():
        if table is not None:
            tables[name] = table
        if len(tables) == HOSTS:
            await index.add_hosts(tables)
            tables = {}
    if tables:
        await index.add_hosts(tables)


async def _add(survey: Survey, index: Index, change: Callable[[Entry], Entry | None]) -> int:
    added, batch = 0, dict[str, Entry]()  # of the same page, the first
    async for found, state in survey.pages():
        if found is not None and state is State.DONE and (entry := change(found)):
            batch.setdefault(entry.page_id, entry)
        if len(batch) == BATCH:
            added += await index.add(list(batch.values()))
            batch = {}
    return added + (await index.add(list(batch.values())) if batch else 0)
