"""`scrapy compare A B`: how near two pages are, and which rule decides."""

import argparse

from scrapy.exceptions import UsageError
from scrapy.settings import Settings

from dedup.scrapy.commands import base


class Command(base.Command):
    """The exit status is 0 for near-duplicates, 1 for different pages, 2 if a page or a setting is wrong."""

    name = "compare"
    arguments = "[options] A B"
    summary = "Compare two pages as the near-duplicate filter does"
    description = (
        "A and B are a URL or a path each. The command shows tokens, distance, resemblance (Jaccard; estimated and "
        "exact), containment, what the pages are called, how much of them is marked as chrome and how much of what is B's "
        "own is in A, whether their markup is equal, the verdict by the project's settings and the rule that "
        "decides, and the tokens that only one page has. What is chrome of a host is learned by crawls: --index names "
        "the index that knows it. "
        "Exit status: 0 near-duplicates, 1 different, 2 a page can't be read or a setting is wrong, 3 to 6 the index "
        "can't be read, as of scrapy index."
    )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """Adds the options."""
        super().add_options(parser)
        what = "judge by what this index, file:PATH or redis://HOST:PORT/DB, knows of the pages' host"
        parser.add_argument("--index", default="", metavar="ADDRESS", help=what)
        whose = "with --index: the index of this spider; only needed where several spiders share a Redis"
        parser.add_argument("--spider", default="", metavar="NAME", help=whose)

    def work(self, args: list[str], opts: argparse.Namespace, settings: Settings) -> int:
        """Compares the two pages."""
        if len(args) != 2:
            raise UsageError("compare takes two pages: A B")
        if opts.spider and not opts.index:
            raise UsageError("--spider says whose index is meant; name the index, too: --index ADDRESS")
        from dedup.scrapy.commands.compare.run import run

        a, b = args
        return run(a, b, settings, opts.index, opts.spider)
