"""`scrapy index check`: finds the invariants of the index that don't hold, and says how to repair it."""

from collections import Counter

from dedup.errors import IndexCorruptError
from dedup.index import Index
from dedup.index.survey import REBUILD, Finding
from dedup.printing import inert, many
from dedup.scrapy.commands.index.access import WIDTH, surveyed
from dedup.scrapy.commands.terminal import busy

#: At most this many findings of a kind are shown.
SHOWN = 5
#: What the library says of a repair, and the commands that do it.
COMMANDS = {
    REBUILD: "rebuild it: scrapy index export FILE reads every readable page, scrapy index import FILE files them "
    "anew under another DEDUP_INDEX or DEDUP_NAMESPACE"
}


async def print_findings(index: Index) -> int:
    """Prints what is wrong with an index, and returns the exit status."""
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
            print(f"{survey.where}: sound, {many(pages, 'page')}")
            return 0
    print(f"{index.where}: damaged")
    for kind, shown in some.items():
        print(f"  {kind}: {counts[kind]:,}")
        for finding in shown:
            print(f"    {told(finding.what, WIDTH)}")
        if counts[kind] > len(shown):
            print(f"    ... and {counts[kind] - len(shown):,} more")
        for repair in dict.fromkeys(finding.repair for finding in shown):
            print(f"    -> {told(COMMANDS.get(repair, repair), 2 * WIDTH)}")
    return IndexCorruptError.exit_status


def told(text: str, width: int) -> str:
    r"""Returns a text of a finding on one line; what is already escaped in it, such as a key, is not escaped again.

    >>> print(told(r"p:\xce", 99), told("\x1b[2J", 99))
    p:\xce \x1b[2J
    """
    return inert(text, width).replace("\\\\", "\\")
