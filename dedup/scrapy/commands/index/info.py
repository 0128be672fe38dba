"""`scrapy index info`: shows what an index holds."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from rich.filesize import decimal

from dedup.fingerprint.chrome import KNOWN
from dedup.index import Entry, Index
from dedup.index.lifecycle import CRAWL, State
from dedup.index.survey import KnownHost, Survey
from dedup.printing import clock, inert
from dedup.scrapy.commands.index.access import WIDTH, surveyed
from dedup.scrapy.commands.terminal import counting, print_table

#: At most this many runs are shown.
RUNS = 5
_STATES = (State.DONE, State.PENDING, State.DEAD)


@dataclass
class _Run:
    first: int
    last: int
    names: set[str] = field(default_factory=set)
    states: Counter[State] = field(default_factory=Counter)


@dataclass
class _Census:
    """The figures that are taken down while the pages of an index are read."""

    states: Counter[State] = field(default_factory=Counter)
    unreadable: int = 0
    runs: dict[str, _Run] = field(default_factory=dict)  #: those of one crawl are one
    hosts: int = 0
    known: int = 0
    damaged: int = 0
    largest: tuple[int, str] = 0, ""  #: of the hosts: the pages that were kept of it, and its name

    def add_host(self, host: KnownHost) -> None:
        if host.table is None:
            self.damaged += 1
            return
        self.hosts += 1
        self.known += host.table.is_known
        self.largest = max(self.largest, (host.table.pages, host.name))

    def add(self, entry: Entry | None, state: State) -> None:
        if entry is None:
            self.unreadable += 1
            return
        self.states[state] += 1
        run = self.runs.setdefault(entry.run[:CRAWL], _Run(entry.filed, entry.filed))
        run.names.add(entry.run)
        run.first, run.last = min(run.first, entry.filed), max(run.last, entry.filed)
        run.states[state] += 1


async def print_info(index: Index) -> int:
    """Prints the figures of an index, and returns the exit status."""
    census = _Census()
    async with surveyed(index) as survey:
        with counting("Reading", await survey.count()) as advance:
            async for entry, state in survey.pages():
                advance()
                census.add(entry, state)
            async for host in survey.hosts():
                census.add_host(host)
        stored = await survey.stored()
    _print_facts(index, survey, census, stored)
    if census.runs:
        _print_runs(census.runs)
    return 0


def _print_facts(index: Index, survey: Survey, census: _Census, stored: tuple[int | None, str]) -> None:
    total = census.states.total()
    print(index.where)
    rarer = (
        (census.states[State.PENDING], "{:,} pending"),
        (census.states[State.DEAD], "{:,} pending of runs that died, which shadow nothing"),
        (census.unreadable, "and {:,} that can't be read (see scrapy index check)"),
    )
    others = "".join(", " + words.format(count) for count, words in rarer if count)
    print(f"  pages       {total:,}: {census.states[State.DONE]:,} done{others}")
    if census.runs:
        first = min(run.first for run in census.runs.values())
        last = max(run.last for run in census.runs.values())
        print(f"  filed       {clock(first)} to {clock(last)} UTC")
    if census.hosts or census.damaged:
        pages, name = census.largest
        hosts = [f"{census.hosts:,}, {census.known:,} of them with {KNOWN} kept pages or more"]
        if census.hosts:
            hosts.append(f"the largest is {inert(name, WIDTH) or 'the one without a name'}, with {pages:,}")
        if census.damaged:
            hosts.append(f"and {census.damaged:,} that can't be read (see scrapy index check)")
        print(f"  hosts       {', '.join(hosts)}")
    octets, of = stored
    if octets is not None:
        print(f"  stored      {decimal(octets)}, {octets / max(1, total):,.0f} bytes a page ({of})")
    print(f"  plan        {survey.parameters.describe(index.settings.expected_pages)}")
    shown = [name for name in index.parameters.texts if name not in {"hash_key", "tables"}]
    print(f"  parameters  {', '.join(f'{name} {survey.header[name]}' for name in shown)}")


def _print_runs(runs: Mapping[str, _Run]) -> None:
    latest = sorted(runs.items(), key=lambda item: (item[1].last, item[1].first), reverse=True)
    rows = (
        [
            run.states.total(),
            *(run.states[state] for state in _STATES),
            clock(run.first),
            clock(run.last),
            f"{crawl} ({len(run.names)} workers)" if len(run.names) > 1 else min(run.names),
        ]
        for crawl, run in latest[:RUNS]
    )
    print_table(["pages", *_STATES, "first filed", "last filed", "run"], rows, len(latest))
