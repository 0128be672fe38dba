"""`scrapy index check`: which invariants of the index don't hold, and how to repair them."""

from collections import Counter

from dedup.errors import IndexCorruptError
from dedup.index import Index
from dedup.index.survey import Finding
from dedup.printing import inert
from dedup.scrapy.commands.index.surveyed import WIDTH, surveyed
from dedup.scrapy.commands.terminal import busy

__all__ = ["check"]

#: Findings of a kind that are shown.
SHOWN = 5


async def check(index: Index) -> int:
    """Prints what is found; the exit status."""
    counts: Counter[str] = Counter()
    some: dict[str, list[Finding]] = {}
    async with surveyed(index) as survey:
        pages = await survey.count()
        with busy("Checking"):
            async for finding in survey.findings():
                counts[finding.kind] += 1
                shown = some.setdefault(finding.kind, [])
                if len(shown) < SHOWN:
                    shown.append(finding)
        if not counts:
            print(f"{survey.index.where}: sound, {pages:,} pages")
            return 0
    print(f"{index.where}: damaged")
    for kind, shown in some.items():
        print(f"  {kind}: {counts[kind]:,}")
        for finding in shown:
            print(f"    {inert(finding.what, WIDTH)}")
        if counts[kind] > len(shown):
            print(f"    ... and {counts[kind] - len(shown):,} more")
        for repair in dict.fromkeys(finding.repair for finding in shown):
            print(f"    -> {inert(repair, 2 * WIDTH)}")
    return IndexCorruptError.exit_status
