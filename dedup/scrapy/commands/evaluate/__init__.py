"""`scrapy evaluate`: how often the verdict is right, on labelled pairs, collections and shadow-mode logs."""

import argparse
from pathlib import Path

from scrapy.exceptions import UsageError
from scrapy.settings import Settings

from dedup.scrapy.commands import base

__all__ = ["Command"]


class Command(base.Command):
    """The thresholds are those of the project's settings, so any of them can be varied by ``-s``."""

    name = "evaluate"
    arguments = "[options] INPUT"
    summary = "Measure precision and recall of the near-duplicate filter"
    description = (
        "INPUT is a file of labelled pairs: .jsonl or .csv with the fields a, b and label, of which a and b are a path, "
        "URL, HTML or text each. Or it is a collection, NAME.pairs.tsv.gz with a, b and their resemblance, beside it "
        "NAME.docs.txt.gz; its pages are below --root. Or it is NAME.same.pairs.tsv.gz: the same with the resemblance of "
        "main texts, and NAME.same.docs.txt.gz has the name of each page, which its versions share. With --from-log, it "
        "is the drop log of a crawl with DEDUP_ACTION=mark. The thresholds are the project's settings: vary them by -s, "
        "and the features by --features."
    )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """Adds the options."""
        super().add_options(parser)
        add = parser.add_argument
        add("--root", type=Path, default=Path(), help="the folder that paths start from (default: this one)")
        other = "INPUT is a drop log: show how many pages other thresholds would have dropped"
        add("--from-log", action="store_true", help=other)
        add("--features", default="", metavar="NAME=VALUE,...", help="e.g. weights=log,sketch_urls=False")
        add("--seed", type=int, default=42, help="number that the order of pages follows from (42)")
        through = "also measure what the index that DEDUP_INDEX names does with a collection"
        add("--through-index", action="store_true", help=through)
        exact = "also compare the resemblance that a collection's sketches estimate with the exact one"
        add("--sketch", action="store_true", help=exact)
        add("--quick", action="store_true", help="try the settings' thresholds only on a collection")
        add("--json", type=Path, metavar="FILE", help="write the figures to FILE")
        add("--figure", type=Path, metavar="FILE", help="draw the figures (.svg, .png; needs matplotlib)")

    def work(self, args: list[str], opts: argparse.Namespace, settings: Settings) -> int:
        """Evaluates the input."""
        if len(args) != 1:
            raise UsageError("evaluate takes one INPUT")
        from dedup.scrapy.commands.evaluate.run import run

        return run(Path(args[0]), opts, settings)
