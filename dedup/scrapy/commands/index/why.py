"""`scrapy index why URL` and `moved URL`: what became of a page, and where else its content was met, by index and logs."""

from pathlib import Path
from typing import NamedTuple

from dedup.droplog.drops import Drops
from dedup.droplog.kept import SUFFIX, Kept, read_kept
from dedup.droplog.reader import Reader, find_beside, find_logs
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
#: What is said of a page in the index of which the logs say nothing.
UNLIKE = "kept: no kept page was the same, as far as the logs here tell, judge index"


class Fate(NamedTuple):
    """What a crawl has made of a page."""

    time: str
    told: str
    of: str = ""  #: the kept page, if the page was dropped for it


def fates(options: Options, url: str, logs: list[Path]) -> list[Fate]:
    """Returns what crawls have made of the page at a URL, by their logs: the last is the last."""
    drops = filter(Filter(url=url).passes, Reader().read(drop_logs(options, logs)))
    found = [Fate(drop["time"], _dropped(drop), drop["duplicate_of"]) for drop in drops]
    if logs:
        beside = [path for log in logs if (path := find_beside(log, SUFFIX))]
    else:
        beside = find_logs(options.crawl.log, SUFFIX) if options.crawl.log else []
    found += [Fate(kept.time, _kept(kept)) for kept in read_kept(beside, url)]
    return sorted(found)


async def print_reasons(options: Options, url: str, logs: list[Path]) -> int:
    """Prints what is known of a URL: its state and its run, and each time that a judge has dropped or kept it, with the evidence.

    Returns the exit status: 0, or 1 if nothing is known.
    """
    paths, found = drop_logs(options, logs), fates(options, url, logs)
    urls = [url, *dict.fromkeys(fate.of for fate in found if fate.of)]
    filed = await _filed(options.index, urls)
    print(inert(url, WIDTH))
    print(f"  in the index: {_told(filed.get(url))}")
    for fate in found:
        print(f"  {fate.told}")
        if fate.of:
            gone = "not among its pages any more: a page with its content took its place, or it was taken out"
            print(f"    {inert(fate.of, WIDTH)}: {_told(filed.get(fate.of), gone)}")
    if not paths:
        print("  whether it was dropped is not known: no drop log is here; name those of its crawls")
    elif not any(fate.of for fate in found):
        print(f"  in {many(len(paths), 'drop log')}: never dropped")
        if not found and url in filed:
            print(f"  {UNLIKE}")
    return 0 if found or url in filed else 1


async def print_places(options: Options, url: str, logs: list[Path]) -> int:
    """Prints the other URLs at which the content of a URL was met, the one seen last first.

    Returns the exit status: 0, or 1 if there are none.
    """
    with Drops(Reader().read(drop_logs(options, logs))) as drops:
        places = list(drops.places(url))
    filed = await _filed(options.index, [url, *(place.url for place in places if place.kept)])
    print(f"{inert(url, WIDTH)}: {_since(filed.get(url))}")
    if not places:
        print("its content was met nowhere else")
        return 1
    for place in places:
        kept = f"; {_since(filed.get(place.url))}" if place.kept else ""
        print(f"  {clock(place.first)} to {clock(place.last)}  {inert(place.url, WIDTH)}{kept}")
    return 0


def _since(found: StoredPage | None) -> str:
    if found is None or found.entry is None:
        return "not among the kept pages of the index"
    return f"kept since {clock(found.entry.filed)}"


def _told(found: StoredPage | None, otherwise: str = "not among its pages") -> str:
    if found is None or found.entry is None:
        return otherwise
    return f"{STATES[found.state]}; filed {clock(found.entry.filed, seconds=True)} by run {found.entry.run}"


def _dropped(drop: Record) -> str:
    parts = [f"rule {inert(drop['rule'], 40)}", f"distance {drop['distance']}"]
    parts.append(f"resemblance {drop['resemblance']:.2f}")
    if (own := drop.get("own")) is not None and (new := drop.get("new")) is not None:
        parts.append(f"{new:,} of {own:,} own shingles new")
    why = drop.get("undone")
    did = f"undone ({inert(why, WIDTH)})" if why else drop["action"]
    if "judge" in drop:
        parts.append(f"judge {inert(drop['judge'], 40)}")
    return f"{clock(drop['time'], seconds=True)} {did}: {', '.join(parts)}; a near-duplicate of"


def _kept(kept: Kept) -> str:
    beside = f"; beside {inert(kept.beside, WIDTH)}" if kept.beside else ""
    why = f"{inert(kept.why, WIDTH)}, judge {inert(kept.judge, 40)}"
    return f"{clock(kept.time, seconds=True)} kept: {why}{beside}"


async def _filed(index: Index, urls: list[str]) -> dict[str, StoredPage]:
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
