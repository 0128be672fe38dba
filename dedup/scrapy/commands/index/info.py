"""`scrapy index info`: shows what an index holds."""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from rich.filesize import decimal

from dedup.fingerprint.chrome import KNOWN
from dedup.index import Entry, Index
from dedup.index.lifecycle import CRAWL, State
from dedup.printing import clock
from dedup.scrapy.commands.index.access import surveyed
from dedup.scrapy.commands.terminal import counting, print_table

#: At most this many runs are shown.
RUNS = 5
_STATES = (State.DONE, State.PENDING, State.DEAD)
_SEE = "that can't be read (see scrapy index check)"


@dataclass
class _Run:
    """The pages of a run, or of all workers of a crawl."""

    first: float = math.inf
    last: float = 0
    names: set[str] = field(default_factory=set)
    states: Counter[State] = field(default_factory=Counter)

    def add(self, entry: Entry, state: State) -> None:
        self.names.add(entry.run)
        self.first, self.last = min(self.first, entry.filed), max(self.last, entry.filed)
        self.states[state] += 1


async def print_info(index: Index) -> int:
    """Prints the figures of an index, and returns the exit status."""
    runs: dict[str, _Run] = {}
    unreadable, hosts, known, damaged = 0, 0, 0, 0
    async with surveyed(index) as survey:
        with counting("Reading", await survey.count()) as advance:
            async for entry, state in survey.pages():
                advance()
                if entry is None:
                    unreadable += 1
                else:
                    runs.setdefault(entry.run[:CRAWL], _Run()).add(entry, state)
            async for host in survey.hosts():
                damaged += host.table is None
                hosts += host.table is not None
                known += host.table is not None and host.table.is_known
        octets, of = await survey.stored()
    states = Counter({state: sum(run.states[state] for run in runs.values()) for state in _STATES})
    total = states.total()
    rarer = (
        (states[State.PENDING], "{:,} pending"),
        (states[State.DEAD], "{:,} pending of runs that died, which shadow nothing"),
        (unreadable, f"and {{:,}} {_SEE}"),
    )
    others = "".join(", " + words.format(count) for count, words in rarer if count)
    print(index.where)
    print(f"  pages       {total:,}: {states[State.DONE]:,} done{others}")
    if hosts or damaged:
        left = f", and {damaged:,} {_SEE}" if damaged else ""
        print(f"  hosts       {hosts:,}, {known:,} of them with {KNOWN} kept pages or more{left}")
    if octets is not None:
        print(f"  stored      {decimal(octets)}, {octets / max(1, total):,.0f} bytes a page ({of})")
    print(f"  plan        {survey.parameters.describe(index.settings.expected_pages)}")
    shown = [name for name in index.parameters.texts if name not in {"hash_key", "tables"}]
    print(f"  parameters  {', '.join(f'{name} {survey.header[name]}' for name in shown)}")
    if runs:
        _print_runs(runs)
    return 0


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
