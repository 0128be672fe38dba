"""`scrapy compare A B`: how near two pages are, and which rule decides."""

import argparse

from scrapy.exceptions import UsageError
from scrapy.settings import Settings

from dedup.scrapy.commands import base

__all__ = ["Command"]


class Command(base.Command):
    """The exit status is 0 for near-duplicates, 1 for different pages, 2 if a page or a setting is wrong."""

    name = "compare"
    arguments = "[options] A B"
    summary = "Compare two pages as the near-duplicate filter does"
    description = (
        "A and B are a URL or a path each. The command shows tokens, distance, resemblance (Jaccard; estimated and "
        "exact), containment, Dice, resemblance by characters, what samples of the shingles say (0 mod m, "
        "winnowing), what the pages are called, how much of them is marked as chrome and how much of what is B's "
        "own is in A, the verdict by the project's settings and the rule that decides, and the tokens that only one "
        "page has. A verdict that depends on what is chrome of the host, which a crawl learns, can't be repeated. "
        "Exit status: 0 near-duplicates, 1 different, 2 a page can't be read or a setting is wrong."
    )

    def work(self, args: list[str], opts: argparse.Namespace, settings: Settings) -> int:
        """Compares the two pages."""
        if len(args) != 2:
            raise UsageError("compare takes two pages: A B")
        from dedup.scrapy.commands.compare.run import run

        a, b = args
        return run(a, b, settings)
