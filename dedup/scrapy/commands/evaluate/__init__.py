"""`scrapy evaluate`: how often the verdict is right, on labelled pairs."""

import argparse
from pathlib import Path

from scrapy.exceptions import UsageError
from scrapy.settings import Settings

from dedup.scrapy.commands import base


class Command(base.Command):
    """The thresholds are those of the project's settings, so any of them can be varied by ``-s``."""

    name = "evaluate"
    arguments = "[options] PAIRS"
    summary = "Measure precision and recall of the near-duplicate filter"
    description = (
        "PAIRS is a file of labelled pairs: .jsonl or .csv with the fields a, b and label; a and b are each a path, a URL, "
        "HTML or text. The thresholds are the project's settings: vary them by -s."
    )

    def work(self, args: list[str], opts: argparse.Namespace, settings: Settings) -> int:
        """Evaluates the pairs."""
        if len(args) != 1:
            raise UsageError("evaluate takes one file of PAIRS")
        from dedup.scrapy.commands.evaluate.run import run

        return run(Path(args[0]), settings)
