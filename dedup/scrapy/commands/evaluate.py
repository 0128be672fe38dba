"""`scrapy evaluate`: how often the verdict is right, on labelled pairs, collections and shadow-mode logs."""

import argparse
import asyncio
import json
import random
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
        from dedup.scrapy.settings import read_settings

        assert self.settings is not None
        self.settings.set("DEDUP_INDEX", self.settings.get("DEDUP_INDEX") or "memory:", "cmdline")
        options = read_settings(self.settings)
        detector = replace(options.detector, features=_features(opts.features))
        if opts.from_log:
            return _log(path, detector)
        if path.name.endswith(".pairs.tsv.gz"):
            return _collection(path, detector, opts, self.settings)
        return _pairs(path, detector, opts)


def _features(text: str) -> Any:
    from dedup.detector import Features
    from dedup.errors import SettingsError

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


def _pairs(path: Path, detector: Any, opts: argparse.Namespace) -> dict[str, Any]:
    from rich.progress import track

    from dedup.evaluate import score_pairs, wilson
    from dedup.labelled import read_page, read_pairs
    from dedup.scrapy.commands import output

    labelled = read_pairs(path)
    pages = {}
    for source in track(
        {page for pair in labelled for page in (pair.a, pair.b)}, "Fingerprints", console=output.bar()
    ):
        html, url = read_page(source, opts.root)
        pages[source] = detector.fingerprint(html, url)
    pairs = score_pairs(detector, [(pages[pair.a], pages[pair.b], pair.near) for pair in labelled])
    rows: list[dict[str, Any]] = []
    for k in range(1, 11):
        for resemblance in (0.0, detector.min_resemblance):
            scores = pairs.scores(k, resemblance)
            rows.append(
                {
                    "k": k,
                    "min_resemblance": resemblance,
                    "precision": scores.precision,
                    "precision_interval": wilson(scores.found, scores.found + scores.wrong),
                    "recall": scores.recall,
                    "recall_interval": wilson(scores.found, scores.found + scores.missed),
                    "f1": scores.f1,
                }
            )
    unjudged = int((pairs.distance > 64).sum())
    print(
        f"{len(labelled):,} pairs, {int(pairs.near.sum()):,} near-duplicates, {unjudged:,} with a page not judged"
    )
    output.table(
        ["k", "resemblance", "precision", "95 %", "recall", "95 %", "F1"],
        [
            [
                row["k"],
                row["min_resemblance"],
                row["precision"],
                output.interval(row["precision_interval"]),
                row["recall"],
                output.interval(row["recall_interval"]),
                row["f1"],
            ]
            for row in rows
        ],
        mark=lambda row: row[:2] == [detector.max_distance, detector.min_resemblance],
    )
    result = {"pairs": len(labelled), "parameters": detector.parameters, "rows": rows}
    if opts.figure:
        from dedup.scrapy.commands.figures import draw_pairs

        draw_pairs(opts.figure, rows, pairs, detector)
        print(f"figure drawn to {opts.figure}")
    return result


def _collection(path: Path, detector: Any, opts: argparse.Namespace, settings: Any) -> dict[str, Any]:
    from rich.progress import track

    from dedup.evaluate import Stream, measure, wilson
    from dedup.labelled import read_collection, read_page
    from dedup.scrapy.commands import output

    collection = read_collection(path)
    order = list(range(len(collection.paths)))
    random.Random(opts.seed).shuffle(order)
    position = {page: at for at, page in enumerate(order)}
    truth = {
        position[page]: {position[other]: alike for other, alike in others.items()}
        for page, others in collection.truth.items()
    }
    fingerprints = []
    for page in track(order, "Fingerprints", console=output.bar()):
        name = collection.paths[page]
        if not (opts.root / name).is_file():
            from dedup.errors import SettingsError

            raise SettingsError(
                f"{opts.root / name} is missing; --root is the folder that the paths are below"
            )
        html, url = read_page(name, opts.root)
        fingerprints.append(detector.fingerprint(html, url))
    stream = Stream(fingerprints, detector.features.bits)
    print(
        f"{stream.size:,} pages, order of seed {opts.seed}, {int((~stream.judged).sum()):,} that can't be judged"
    )
    sweep = [(k, r) for r in sorted({0.0, detector.min_resemblance}) for k in range(1, 11)]
    rows: list[dict[str, Any]] = []
    for k, resemblance in track(sweep, "Thresholds", console=output.bar()):
        inline = measure(stream.filter(k, resemblance), truth)
        rows.append(
            {
                "k": k,
                "min_resemblance": resemblance,
                **inline._asdict(),
                "false_rate": inline.false_rate,
                "false_interval": wilson(inline.false, inline.drops),
                "recall": inline.recall,
                "recall_interval": wilson(inline.could - inline.missed, inline.could),
            }
        )
    output.table(
        ["k", "resemblance", "drops", "false", "% of drops", "95 %", "grey", "missed", "recall", "95 %"],
        [
            [
                row["k"],
                row["min_resemblance"],
                row["drops"],
                row["false"],
                f"{100 * row['false_rate']:.2f}",
                output.interval(tuple(100 * bound for bound in row["false_interval"]), 2),
                row["grey"],
                f"{row['missed']} of {row['could']}",
                f"{row['recall']:.4f}",
                output.interval(row["recall_interval"]),
            ]
            for row in rows
        ],
        mark=lambda row: row[:2] == [detector.max_distance, detector.min_resemblance],
    )
    if opts.through_index:
        of = asyncio.run(_through_index(fingerprints, detector, settings))
        alike = (of == stream.filter(detector.max_distance, detector.min_resemblance)).all()
        print(
            f"through the index {settings['DEDUP_INDEX']}: {'the same verdicts' if alike else 'OTHER VERDICTS'}"
        )
    if opts.figure:
        from dedup.scrapy.commands.figures import draw_collection

        draw_collection(opts.figure, rows, stream, truth, detector, collection_name(path))
        print(f"figure drawn to {opts.figure}")
    return {"pages": stream.size, "seed": opts.seed, "parameters": detector.parameters, "rows": rows}


def collection_name(path: Path) -> str:
    """What a collection is called in a figure."""
    return path.name.removesuffix(".pairs.tsv.gz")


async def _through_index(fingerprints: list[Any], detector: Any, settings: Any) -> Any:
    import numpy as np

    from dedup.index import open_index

    namespace = f"evaluate-{random.SystemRandom().getrandbits(48):x}"
    index = open_index(settings["DEDUP_INDEX"], detector, namespace=namespace)
    of = []
    for at, fingerprint in enumerate(fingerprints):
        verdict = await index.claim(str(at), str(at), fingerprint)
        of.append(int(verdict.of) if verdict.of is not None else -1)
    await index.close()  # pending claims are released: nothing stays in the index
    return np.array(of)


def _log(path: Path, detector: Any) -> dict[str, Any]:
    from dedup.errors import SettingsError
    from dedup.scrapy.commands import output

    found = []
    unreadable = 0
    try:
        with path.open("rb") as lines:
            for line in lines:
                try:
                    record = json.loads(line)
                    found.append((int(record["distance"]), float(record["resemblance"])))
                except (ValueError, KeyError, TypeError):
                    unreadable += 1
    except OSError as error:
        raise SettingsError(f"{path} can't be read as a drop log: {error}") from None
    thresholds = [0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95]
    rows = [
        [k, *(sum(d <= k and r >= least for d, r in found) for least in thresholds)] for k in range(1, 11)
    ]
    print(
        f"{len(found):,} near-duplicates in {path}"
        + (f", {unreadable:,} lines unreadable" if unreadable else "")
    )
    print("How many pages would have been dropped, by k (down) and resemblance (across):")
    output.table(["k", *map(str, thresholds)], rows, mark=lambda row: row[0] == detector.max_distance)
    print(
        "The log knows only what its crawl found with its own thresholds: to see more, crawl in mark mode with "
        "DEDUP_MAX_DISTANCE=7 and DEDUP_MIN_RESEMBLANCE=0.5."
    )
    return {"log": str(path), "records": len(found), "thresholds": thresholds, "rows": rows}
