"""`scrapy index why URL`: what became of a page, and why, by the index and the drop logs."""

from pathlib import Path

from dedup.droplog.reader import Reader
from dedup.droplog.record import Filter, Record
from dedup.index import Index
from dedup.index.entry import storable_id, storable_url
from dedup.index.lifecycle import State
from dedup.index.survey import StoredPage
from dedup.printing import clock, inert, many
from dedup.scrapy.commands.index.access import WIDTH, drop_logs, page_id
from dedup.scrapy.commands.terminal import counting
from dedup.scrapy.settings import Options

#: What is said of a page in a state.
STATES = {
    State.DONE: "kept, and handed over",
    State.PENDING: "kept by a crawl that is still at work on it",
    State.DEAD: "kept by a crawl that died before it was handed over, so it counts as new",
}


async def print_reasons(options: Options, url: str, logs: list[Path]) -> int:
    """Prints what is known of a URL: its state and its run, and each drop with its evidence and the kept page.

    Returns the exit status: 0, or 1 if nothing is known.
    """
    paths = drop_logs(options, logs)
    drops = list(filter(Filter(url=url).passes, Reader().read(paths)))
    urls = [url, *dict.fromkeys(drop["duplicate_of"] for drop in drops)]
    filed = await _filed(options.index, urls)
    print(inert(url, WIDTH))
    print(f"  in the index: {_told(filed.get(url))}")
    for drop in drops:
        print(f"  {_evidence(drop)}")
        of = drop["duplicate_of"]
        gone = "not among its pages any more: a page with its content took its place, or it was taken out"
        print(f"    {inert(of, WIDTH)}: {_told(filed.get(of), gone)}")
    if not paths:
        print("  whether it was dropped is not known: no drop log is here; name those of its crawls")
    elif not drops:
        print(f"  in {many(len(paths), 'drop log')}: never dropped")
    return 0 if drops or url in filed else 1


def _told(found: StoredPage | None, otherwise: str = "not among its pages") -> str:
    if found is None or found.entry is None:
        return otherwise
    return f"{STATES[found.state]}; filed {clock(found.entry.filed, seconds=True)} by run {found.entry.run}"


def _evidence(drop: Record) -> str:
    parts = [f"rule {inert(drop['rule'], 40)}", f"distance {drop['distance']}"]
    parts.append(f"resemblance {drop['resemblance']:.2f}")
    if (own := drop.get("own")) is not None and (new := drop.get("new")) is not None:
        parts.append(f"{new:,} of {own:,} own shingles new")
    why = drop.get("undone")
    did = f"undone ({inert(why, WIDTH)})" if why else drop["action"]
    return f"{clock(drop['time'], seconds=True)} {did}: {', '.join(parts)}; a near-duplicate of"


async def _filed(index: Index, urls: list[str]) -> dict[str, StoredPage]:
    """Returns the pages at some URLs, as the index has them."""
    try:
        survey = await index.survey() if index.persistent else None
        if survey is None:
            return {}
        ids = {storable_id(page_id(url)): url for url in urls} | {storable_url(url): url for url in urls}
        found: dict[str, StoredPage] = {}
        async with survey:
            with counting("Reading", await survey.count()) as advance:
                async for page in survey.pages():
                    advance()
                    if page.entry is None:
                        continue
                    if (url := ids.get(page.entry.page_id) or ids.get(page.entry.url)) is not None:
                        found[url] = page
        return found
    finally:
        await index.close()
