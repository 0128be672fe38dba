"""`scrapy index moved URL`: finds where else the content of a page was met (Barber's lost and found)."""

from pathlib import Path

from dedup.droplog.drops import Drops
from dedup.droplog.reader import Reader
from dedup.index import Index
from dedup.printing import clock, inert
from dedup.scrapy.commands.index.access import WIDTH, drop_logs, page_id
from dedup.scrapy.settings import Options


async def print_places(options: Options, url: str, logs: list[Path]) -> int:
    """Prints the other URLs at which the content of a URL was met, the one seen last first.

    Returns the exit status: 0, or 1 if there are none.
    """
    with Drops(Reader().read(drop_logs(options, logs))) as drops:
        places = list(drops.places(url))
    filed = await _filed(options.index, [url, *(place.url for place in places if place.kept)])
    print(f"{inert(url, WIDTH)}: {_kept(filed.get(url))}")
    if not places:
        print("its content was met nowhere else")
        return 1
    for place in places:
        kept = f"; {_kept(filed.get(place.url))}" if place.kept else ""
        print(f"  {clock(place.first)} to {clock(place.last)}  {inert(place.url, WIDTH)}{kept}")
    return 0


def _kept(time: int | None) -> str:
    return "not among the kept pages of the index" if time is None else f"kept since {clock(time)}"


async def _filed(index: Index, urls: list[str]) -> dict[str, int]:
    """Returns the times, in seconds since 1970, at which pages at some URLs were filed; others are left out."""
    try:
        survey = await index.survey() if index.persistent else None
        if survey is None:
            return {}
        await survey.close()
        entries = {url: await index.find(page_id(url)) for url in urls}
    finally:
        await index.close()
    return {url: entry.filed for url, entry in entries.items() if entry is not None}
