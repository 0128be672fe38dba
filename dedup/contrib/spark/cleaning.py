"""Cleans archives on Spark: `scrapy dedup --engine spark`.

The workers read the pages and make their fingerprints.  Then the filter of a crawl judges them, part by part: pages that can
influence each other's verdicts are in one part (`dedup.batch.parts`).  The filter counts copies, so they are judged, too.
"""

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.pandas.types import from_arrow_schema

from dedup.contrib.archives.capture import Reader
from dedup.contrib.archives.cleaning import Cleaning
from dedup.contrib.archives.journal import Journal
from dedup.contrib.archives.parts import merge
from dedup.contrib.spark.archives import ReadTask, captures
from dedup.contrib.spark.contents import contents, kept_by_spark
from dedup.contrib.spark.filtered import SAID, filtered
from dedup.contrib.spark.session import session
from dedup.contrib.spark.verdicts import placed_by
from dedup.errors import SettingsError
from dedup.files import make_private
from dedup.filter import Counts

#: Rows that go into the journal at once.
ROWS = 10_000


@dataclass(frozen=True)
class Spark:
    """The `dedup.contrib.archives.cleaning.Engine` that runs on Spark."""

    master: str  #: as Spark calls it: "local[2]", "spark://HOST:PORT", "yarn"

    def __call__(self, cleaning: Cleaning, journal: Journal, readers: Sequence[Reader], folder: Path) -> None:
        """Raises `SettingsError` if Spark can't be started so, and `DedupError` if it can't finish."""
        if cleaning.other or cleaning.against:
            raise SettingsError(
                "--engine spark joins nothing else; leave out --index and --against, or --engine spark"
            )
        with session(self.master) as spark:
            read = kept_by_spark(_captures(spark, cleaning, readers))
            starts = _note_facts(read, journal, [reader.name for reader in readers])
            pages = read.where("facts is null")
            _note_pages(pages, journal, starts)
            _note_verdicts(pages, journal, starts, cleaning, folder)
            read.unpersist()


def _captures(spark: SparkSession, cleaning: Cleaning, readers: Sequence[Reader]) -> DataFrame:
    paths = [os.path.abspath(reader.path) for reader in readers]
    names, scope = [reader.name for reader in readers], cleaning.plan.scope
    asked = ReadTask(paths, names, cleaning.types, cleaning.detector, scope, cleaning.keep, cleaning.named)
    return captures(spark, asked)


def _note_facts(read: DataFrame, journal: Journal, names: Sequence[str]) -> list[int]:
    """Notes what else is in the inputs, and returns the position at which each input begins."""
    others: dict[str, tuple[int, str]] = {}
    damage: dict[str, tuple[int, str]] = {}
    items: list[int] = []
    for row in read.where("facts is not null").orderBy("order.number").select("facts").collect():
        facts = json.loads(row["facts"])
        for table, found in ((others, facts["others"]), (damage, facts["damage"])):
            for why, count in found.items():
                before, first = table.get(why, (0, names[len(items)]))
                table[why] = before + count, first
        items.append(facts["items"])
    journal.set(others=others, damage=damage, items=sum(items))
    return [0, *accumulate(items)]


def _position(page_id: str, starts: Sequence[int]) -> int:
    number, _, item = page_id.partition(":")
    return starts[int(number)] + int(item)


def _note_pages(pages: DataFrame, journal: Journal, starts: Sequence[int]) -> None:
    rows: list[tuple[Any, ...]] = []
    order = [f"order.{name}" for name in ("turn", "fetched", "url", "input")]
    for row in pages.select("id", *order, "name", "record_id", "size", "payload").toLocalIterator():
        rows.append((_position(row[0], starts), *row[1:8], bytes(row[8]), b"", b""))
        if len(rows) == ROWS:
            journal.add_rows(rows, {})
            rows = []
    journal.add_rows(rows, {"read": True})


def _note_verdicts(
    pages: DataFrame, journal: Journal, starts: Sequence[int], cleaning: Cleaning, folder: Path
) -> None:
    found = contents(pages).withColumn("mixed", sql.col("mixed") | (sql.col("pages") > 1))
    placed = placed_by(pages, found, cleaning.detector, shares_chrome=cleaning.plan.chrome)
    work = partial(
        filtered,
        detector=cleaning.detector,
        plan=cleaning.plan,
        policy=cleaning.policy,
    )
    in_order = placed.where("part is not null").repartition("part").sortWithinPartitions("order")
    judged = in_order.select("id", "url", "size", "packed", "order").mapInArrow(work, from_arrow_schema(SAID))
    stats = Counts()
    for reason, count in pages.where("reason is not null").groupBy("reason").count().collect():
        names = ("pages", "unjudged", f"unjudged/{reason}", "judges/read")
        merge(stats, {f"dedup/{name}": count for name in names})
    if new := placed.where("part is null").count():
        merge(stats, {"dedup/pages": new, "dedup/new": new, "dedup/judges/index": new})
    journal.begin_verdicts()
    make_private(folder / "duplicates")
    with (folder / "duplicates").open("a", encoding="ascii") as log:
        for page_id, of, of_url, line, counts, _ in judged.orderBy("order").toLocalIterator():
            if counts is not None:
                merge(stats, json.loads(counts))
                continue
            if line is not None and cleaning.duplicates:
                log.write(line)
            if of is not None:
                journal.drop(_position(page_id, starts), _position(of, starts), of_url)
        log.flush()
        os.fsync(log.fileno())
    journal.end_verdicts(judged=True, stats=stats, known=0)
