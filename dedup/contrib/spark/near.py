"""Finds the near pairs in a table of pages.  Every worker gets all simhashes, and each table of a plan is a task.

This is section 3.3 of Manku, Jain and Das Sarma 2007 for a table that is compared with itself: 8 bytes of each page go to
every worker, numpy finds the pairs (`dedup.batch.hamming`), and the pairs are joined with the sketches.
"""

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Unpack

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from dedup.batch.hamming import near_by_table, tables_of_pairs
from dedup.batch.pairs import Clusters
from dedup.contrib.spark.contents import contents, hashes, kept_by_spark, node
from dedup.contrib.spark.fingerprints import prints_of
from dedup.contrib.spark.pages import Options, task_of
from dedup.fingerprint.detector import Detector
from dedup.fingerprint.shingles import Hashes
from dedup.fingerprint.sketch import Sketcher


def near_pairs(pages: DataFrame, **given: Unpack[Options]) -> DataFrame:
    """Returns a row for each pair of pages that the method finds, such as all within ``max_distance`` bits.

    ``left`` and ``right`` are ids, the earlier page first; ``distance`` is in bits of the simhash, ``resemblance`` is
    estimated, and ``duplicate`` says whether it is enough, as `Detector.compare` does.  The first of several
    pages with equal tokens stands for all.

    Arguments and errors are those of `fingerprints`.
    """
    found = _pairs(contents(kept_by_spark(prints_of(pages, given))), task_of(given).detector)
    return found.drop("node", "other")


def clusters(pages: DataFrame, **given: Unpack[Options]) -> DataFrame:
    """Returns the ``id`` of each page and its ``cluster``: the id of the first page of its cluster, which may be its own.

    Two pages are in one cluster if they are a near pair and duplicates, or if a chain of such pairs connects them.  A cluster
    may have several pages that `unique` keeps: resemblance is not transitive, and pages of one host are dropped only if
    what is their own matches.

    Arguments and errors are those of `fingerprints`.
    """
    prints = kept_by_spark(prints_of(pages, given))
    found = contents(prints)
    pairs = _pairs(found, task_of(given).detector).where("duplicate").select("node", "other").toArrow()
    ordered = found.select("node", "id", "order").orderBy("order").drop("order").toArrow()
    nodes = ordered["node"].to_numpy()
    by_node = nodes.argsort()
    joined = Clusters(len(nodes))
    left, right = (by_node[nodes[by_node].searchsorted(pairs[end].to_numpy())] for end in ("node", "other"))
    joined.join(left, right)
    lowest = joined.lowest()
    table = pa.table({"node": ordered["node"], "cluster": ordered["id"].take(lowest)})
    first = prints.sparkSession.createDataFrame(table)
    judged = sql.when(sql.col("reason").isNull(), node()).alias("node")
    return (
        prints.select("id", judged)
        .join(first, "node", "left")
        .select("id", sql.coalesce("cluster", "id").alias("cluster"))
    )


def links(spark: SparkSession, simhashes: Hashes, max_distance: int) -> tuple[Hashes, Hashes]:
    """Returns pairs of different simhashes that connect all that are near, chain by chain.  They are few, however many are near."""
    found = _near(spark, simhashes, max_distance, stars=True)
    if found is None:
        return simhashes[:0], simhashes[:0]
    pairs = found.toArrow()
    left, right = (hashes(pairs[end]) for end in ("a", "b"))
    return left, right


def _pairs(found: DataFrame, detector: Detector) -> DataFrame:
    """Returns the pairs of contents that are candidates, with the columns of `near_pairs` and their nodes."""
    if detector.finder.own_keys:
        filed = found.select("node", sql.posexplode("bands").alias("at", "key"))
        others = filed.select(sql.col("node").alias("other"), "at", "key")
        same = filed.join(others, ["at", "key"]).where("node < other").select("node", "other").distinct()
    else:
        filed = found.select("node", sql.col("simhash").alias("a"))
        others = filed.select(sql.col("node").alias("other"), sql.col("a").alias("b"))
        several = filed.groupBy("a").count().where("count > 1").select("a", sql.col("a").alias("b"))
        near = _near(
            found.sparkSession,
            np.unique(hashes(found.select("simhash").toArrow()["simhash"])),
            detector.radius,
            stars=False,
        )
        ends = several.union(near) if near else several
        same = ends.join(filed, "a").join(others, "b").where("a <> b or node < other").select("node", "other")
    sides = [sql.struct("order", "id", "node", "simhash", "sketch")] * 2
    left = found.select("node", sides[0].alias("l"))
    right = found.select(sql.col("node").alias("other"), sides[1].alias("r"))
    both = same.join(left, "node").join(right, "other")
    swapped = sql.col("l.order") > sql.col("r.order")
    first, last = (sql.when(swapped, sql.col(a)).otherwise(sql.col(b)) for a, b in (("r", "l"), ("l", "r")))
    ends = both.select(first.alias("l"), last.alias("r")).select(
        sql.col("l.id").alias("left"),
        sql.col("r.id").alias("right"),
        sql.col("l.node").alias("node"),
        sql.col("r.node").alias("other"),
        sql.bit_count(sql.col("l.simhash").bitwiseXOR(sql.col("r.simhash"))).alias("distance"),
        sql.col("l.sketch").alias("sketch"),
        sql.col("r.sketch").alias("against"),
    )
    schema = "left string, right string, node long, other long, distance int, resemblance double, duplicate boolean"
    kind, least = detector.sketcher, detector.min_resemblance
    return ends.mapInArrow(partial(_compared, sketcher=kind, least=least), schema)


def _compared(
    batches: Iterable[pa.RecordBatch], sketcher: Sketcher, least: float
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        left, right = (sketcher.words(batch.column(end).to_pylist()) for end in ("sketch", "against"))
        alike = pa.array(sketcher.estimate(*sketcher.match_counts(left, right)), pa.float64())
        columns = [*batch.columns[:5], alike, pc.greater_equal(alike, least)]
        yield pa.RecordBatch.from_arrays(columns, names=[*batch.schema.names[:5], "resemblance", "duplicate"])


def _near(spark: SparkSession, values: Hashes, max_distance: int, *, stars: bool) -> DataFrame | None:
    """Returns pairs of different simhashes as longs ``a`` and ``b``; None if only equal ones are near."""
    tables = len(tables_of_pairs(len(values), max_distance))
    if not tables or not len(values):
        return None
    find = partial(_by_tables, values=values, max_distance=max_distance, stars=stars)
    return spark.range(tables).mapInArrow(find, "a long, b long")


def _by_tables(
    batches: Iterable[pa.RecordBatch], values: Hashes, max_distance: int, stars: bool
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for number in batch.column("id").to_pylist():
            found = near_by_table(values, max_distance, number)
            for left, right in _as_stars(found, values) if stars else found:
                yield pa.RecordBatch.from_arrays(
                    [left.view(np.int64), right.view(np.int64)], names=["a", "b"]
                )


def _as_stars(pairs: Iterable[tuple[Hashes, Hashes]], values: Hashes) -> Iterator[tuple[Hashes, Hashes]]:
    """Yields pairs that connect the same simhashes, fewer than there are simhashes.  ``values`` are in order."""
    joined = Clusters(len(values))
    for left, right in pairs:
        joined.join(values.searchsorted(left), values.searchsorted(right))
    lowest = joined.lowest()
    some = np.flatnonzero(lowest != np.arange(len(values)))
    yield values[some], values[lowest[some]]
