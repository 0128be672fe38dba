"""`scrapy evaluate`: how often the verdict is right, on labelled pairs and by shadow-mode logs."""

import argparse
from pathlib import Path

from scrapy.exceptions import UsageError
from scrapy.settings import Settings

from dedup.scrapy.commands import base


class Command(base.Command):
    """The thresholds are those of the project's settings, so any of them can be varied by ``-s``."""

    name = "evaluate"
    arguments = "[options] INPUT"
    summary = "Measure precision and recall of the near-duplicate filter"
    description = (
        "INPUT is a file of labelled pairs: .jsonl or .csv with the fields a, b and label; a and b are each a path, a URL, "
        "HTML or text. With --from-log, it is the drop log of a crawl with DEDUP_ACTION=mark. The thresholds "
        "are the project's settings: vary them by -s."
    )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """Adds the options."""
        super().add_options(parser)
        add = parser.add_argument
        add("--root", type=Path, default=Path(), help="the folder that paths start from (default: this one)")
        other = "INPUT is a drop log: show how many pages other thresholds would have dropped"
        add("--from-log", action="store_true", help=other)

    def work(self, args: list[str], opts: argparse.Namespace, settings: Settings) -> int:
        """Evaluates the input."""
        if len(args) != 1:
            raise UsageError("evaluate takes one INPUT")
        from dedup.scrapy.commands.evaluate.run import run

        return run(Path(args[0]), opts, settings)
