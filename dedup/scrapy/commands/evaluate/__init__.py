"""`scrapy evaluate`: how often the verdict is right, on labelled pairs, collections and shadow-mode logs."""

import argparse
from pathlib import Path

from scrapy.commands import ScrapyCommand
from scrapy.exceptions import UsageError

__all__ = ["Command"]


class Command(ScrapyCommand):
    """The thresholds are those of the project's settings, so any of them can be varied by ``-s``."""

    requires_crawler_process = False
    default_settings = {"LOG_ENABLED": False}  # noqa: RUF012 (as Scrapy declares it)

    def syntax(self) -> str:
        """Names the arguments."""
        return "[options] INPUT"

    def short_desc(self) -> str:
        """Describes the command in the list of commands."""
        return "Measure precision and recall of the near-duplicate filter"

    def long_desc(self) -> str:
        """Describes the command for --help."""
        return (
            "INPUT is a file of labelled pairs (.jsonl or .csv with the fields a, b, label; a and b are a path, "
            "URL, HTML or text each), or a collection NAME.pairs.tsv.gz (a, b, resemblance; beside it "
            "NAME.docs.txt.gz; its pages are below --root), or, with --from-log, the drop log of a crawl with "
            "DEDUP_ACTION=mark. The thresholds are the project's settings: vary them by -s, and the features by "
            "--features."
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """Adds the options."""
        super().add_options(parser)
        parser.add_argument(
            "--root", type=Path, default=Path(), help="the folder that paths start from (default: this one)"
        )
        parser.add_argument(
            "--from-log",
            action="store_true",
            help="INPUT is a drop log: show how many pages other thresholds would have dropped",
        )
        parser.add_argument(
            "--features", default="", metavar="NAME=VALUE,...", help="e.g. weights=log,sketch_urls=False"
        )
        parser.add_argument(
            "--seed", type=int, default=42, help="chooses the order of a collection's pages (default: 42)"
        )
        parser.add_argument(
            "--through-index",
            action="store_true",
            help="also feed a collection to the index that DEDUP_INDEX names, and compare the verdicts",
        )
        parser.add_argument(
            "--sketch",
            action="store_true",
            help="also compare the resemblance that a collection's sketches estimate with the exact one",
        )
        parser.add_argument(
            "--quick", action="store_true", help="try the settings' thresholds only on a collection"
        )
        parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to FILE")
        parser.add_argument(
            "--figure", type=Path, metavar="FILE", help="draw the figures (.svg, .png; needs matplotlib)"
        )

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        """Evaluates the input."""
        if len(args) != 1:
            raise UsageError("evaluate takes one INPUT")
        from dedup.scrapy.commands.evaluate.run import run

        assert self.settings is not None
        self.exitcode = run(Path(args[0]), opts, self.settings)
