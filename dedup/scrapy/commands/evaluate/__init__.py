"""`scrapy evaluate`: how often the verdict is right, on labelled pairs, collections and shadow-mode logs."""

import argparse
import json
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from scrapy.commands import ScrapyCommand
from scrapy.exceptions import UsageError

__all__ = ["Command"]


class Command(ScrapyCommand):
    """Thresholds come from the project's settings, so any of them can be varied by ``-s``."""

    requires_crawler_process = False
    default_settings = {"LOG_ENABLED": False}  # noqa: RUF012 (as Scrapy declares it)

    def syntax(self) -> str:
        """The arguments."""
        return "[options] INPUT"

    def short_desc(self) -> str:
        """For the list of commands."""
        return "Measure precision and recall of the near-duplicate filter"

    def long_desc(self) -> str:
        """For --help."""
        return (
            "INPUT is a file of labelled pairs (.jsonl or .csv with the fields a, b, label; a and b are a path, "
            "URL, HTML or text each), or a collection NAME.pairs.tsv.gz (a, b, resemblance; beside it "
            "NAME.docs.txt.gz; pages below --root), or, with --from-log, a drop log of a crawl with "
            "DEDUP_ACTION=mark. Thresholds are the project's settings: vary them by -s, features by --features."
        )

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """The options."""
        super().add_options(parser)
        parser.add_argument(
            "--root", type=Path, default=Path(), help="folder that paths are below (default: this)"
        )
        parser.add_argument(
            "--from-log", action="store_true", help="INPUT is a drop log: what would k and r change?"
        )
        parser.add_argument(
            "--features", default="", metavar="NAME=VALUE,...", help="e.g. weights=log,sketch_urls=False"
        )
        parser.add_argument(
            "--seed", type=int, default=42, help="of the order of a collection's pages (default: 42)"
        )
        parser.add_argument(
            "--through-index",
            action="store_true",
            help="feed a collection to the index that DEDUP_INDEX names, too",
        )
        parser.add_argument(
            "--sketch",
            action="store_true",
            help="compare a collection's sketches with exact resemblance, too",
        )
        parser.add_argument(
            "--quick", action="store_true", help="a collection by the settings' thresholds only"
        )
        parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to FILE")
        parser.add_argument(
            "--figure", type=Path, metavar="FILE", help="draw them (.svg, .png; needs matplotlib)"
        )

    def run(self, args: list[str], opts: argparse.Namespace) -> None:
        """Reads, measures, prints."""
        from dedup.errors import DedupError

        if len(args) != 1:
            raise UsageError("evaluate takes one INPUT")
        try:
            result = self._evaluate(Path(args[0]), opts)
        except DedupError as error:
            print(f"evaluate: {error}")
            self.exitcode = error.exit_status
            return
        if opts.json:
            opts.json.write_text(json.dumps(result, indent=1) + "\n")
            print(f"figures written to {opts.json}")

    def _evaluate(self, path: Path, opts: argparse.Namespace) -> dict[str, Any]:
        from dedup.scrapy.commands.evaluate.runs import evaluate_collection, evaluate_log, evaluate_pairs
        from dedup.scrapy.settings import read_settings

        assert self.settings is not None
        self.settings.set("DEDUP_INDEX", self.settings.get("DEDUP_INDEX") or "memory:", "cmdline")
        options = read_settings(self.settings)
        detector = replace(options.detector, features=_features(opts.features))
        if opts.from_log:
            return evaluate_log(path, detector)
        if path.name.endswith(".pairs.tsv.gz"):
            return evaluate_collection(path, detector, opts, self.settings)
        return evaluate_pairs(path, detector, opts)


def _features(text: str) -> Any:
    from dedup.errors import SettingsError
    from dedup.fingerprint.detector import Features

    kinds: dict[str, Any] = {field.name: type(field.default) for field in fields(Features)}
    values: dict[str, Any] = {}
    for part in filter(None, text.split(",")):
        name, _, value = part.partition("=")
        if name not in kinds:
            raise SettingsError(f"--features names {name!r}; allowed: {', '.join(kinds)}")
        try:
            values[name] = value.lower() in {"1", "true"} if kinds[name] is bool else kinds[name](value)
        except ValueError:
            raise SettingsError(f"--features {name} is {value!r}; allowed: a whole number") from None
    return Features(**values)
