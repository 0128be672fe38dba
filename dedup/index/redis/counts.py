"""Whether the counters, the claims and the leases of an index in Redis go with its pages: a part of `dedup.index.redis.check`."""

from collections.abc import AsyncIterator, Iterator

from dedup.index.redis.keys import PAGE, Keys
from dedup.index.redis.reading import RUN, Numbers, Reading
from dedup.index.survey import Finding
from dedup.printing import octets as shown

#: Claims that are read at once.
CLAIMS = 1000
#: A lease that ends later than this, in ms from now, was given by another clock.
LONGEST_LEASE = 24 * 3600 * 1000


async def findings(reading: Reading, before: list[int], listed: Numbers) -> AsyncIterator[Finding]:
    """Yields what is wrong, if the counters were read ``before`` the pages were ``listed``."""
    for finding in _counted(reading.keys, before, await reading.counters(), listed):
        yield finding
    async for finding in _claims(reading):
        yield finding
    leases, now = await reading.leases()
    for run, ends in leases.items():
        if not RUN.fullmatch(run) or not ends - now < LONGEST_LEASE:
            what = f"{shown(run)} until {ends:.0f} ms"
            repair = f"ZREM {shown(reading.keys.runs)} each of them"
            yield Finding("leases that no crawl can have", what, repair)


def _counted(keys: Keys, before: list[int], after: list[int], listed: Numbers) -> Iterator[Finding]:
    """Yields a finding if the counters do not say how many pages there are; while a crawl is running, they bound it."""
    kind, sequence, back = "the counters", shown(keys.sequence), shown(keys.released)
    if not before or not after:
        yield Finding(kind, f"{sequence} is missing, or it or {back} is not a number")
        return
    (given, released), (last, taken) = before, after
    filed, highest = len(listed), int(listed.max(initial=0))
    if last < highest:
        repair = f"SET {sequence} {highest}, before the next crawl overwrites pages"
        yield Finding(kind, f"{sequence} is {last}, but page {highest} is filed", repair)
    elif not given - taken <= filed <= last - released:
        what = f"{sequence} {last} less {back} {taken} is {last - taken}, but {filed} pages are filed"
        yield Finding(kind, what, f"SET {back} {last - filed}, while no crawl is running")


async def _claims(reading: Reading) -> AsyncIterator[Finding]:
    """Yields pending claims that are of no page or of no run."""
    keys, server = reading.keys, reading.server
    pending, cursor = keys.pending, 0
    repair = f"HDEL {shown(pending)} each of them"
    while True:
        (answer,) = await server.ask([("HSCAN", pending, cursor, "COUNT", CLAIMS)])
        if answer is None:
            break  # of another type
        cursor, owners = answer
        numbers = [number for number in owners if PAGE.fullmatch(b"p:" + number)]
        for number, run in owners.items():
            if number not in numbers or not RUN.fullmatch(run):
                what = f"{shown(number)}: {shown(run)}"
                yield Finding("pending claims without a number or a run", what, repair)
        there = await server.ask([("EXISTS", keys.pages + number) for number in numbers])
        for number, exists in zip(numbers, there, strict=True):
            commands = [("HEXISTS", pending, number), ("EXISTS", keys.pages + number)]
            if not exists and await server.ask(commands, together=True) == [1, 0]:
                yield Finding("pending claims without a page", f"page {number.decode()}", repair)
        if cursor == 0:
            break
