"""Judges a table of pages, with the verdicts of one machine that judges the pages one after another.

What is kept depends on the order: resemblance is not transitive, and the chrome of a host is learned on the way.  So pages
that can influence each other's verdicts are judged by one task, in their order, by the same code as everywhere
(`dedup.batch.parts`).  Copies of what is surely kept are left out before.
"""

from collections.abc import Iterable, Iterator
from functools import partial
from tempfile import TemporaryDirectory
from typing import Unpack

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.pandas.types import from_arrow_schema

from dedup.batch.pages import Settings, open
from dedup.batch.parts import Groups, parts
from dedup.contrib.archives.packing import unpack
from dedup.contrib.spark.contents import contents, hashes, kept_by_spark, node
from dedup.contrib.spark.fingerprints import batched, prints_of
from dedup.contrib.spark.near import links
from dedup.contrib.spark.pages import Options, task_of
from dedup.errors import DedupError
from dedup.fingerprint.detector import Detector

#: What is said of a page.
VERDICT = pa.schema(
    [
        *((name, pa.string()) for name in ("id", "url", "status", "reason", "of", "of_id", "rule")),
        ("distance", pa.int32()),
        ("resemblance", pa.float64()),
    ]
)


def verdicts(pages: DataFrame, **given: Unpack[Options]) -> DataFrame:
    """Returns the verdict on each page, in the columns of `VERDICT`.

    They are the verdicts of `dedup.Pages.add` on the same pages in the same order, however the table is partitioned, and
    even if Spark runs a task twice.

    Arguments and errors are those of `fingerprints`; and `DedupError` if two rows have one id, or one has none.  Some of
    the work is done by this call: the driver gets about 100 bytes of each different content.
    """
    _, settings, detector, plan = task_of(given)
    prints = kept_by_spark(prints_of(pages, given))
    _check_ids(prints)
    found = contents(prints)
    placed = placed_by(prints, found, detector, shares_chrome=plan.chrome)
    copied = found.where("pages > 1").select("node", sql.col("id").alias("first"), sql.col("url").alias("at"))
    placed = placed.join(copied, "node", "left")
    is_copy = sql.coalesce(~sql.col("unsure") & (sql.col("first") != sql.col("id")), sql.lit(False))
    needed = placed.where(sql.col("part").isNotNull() & ~is_copy)
    in_order = needed.repartition("part").sortWithinPartitions("part", "order")
    judge = partial(verdicts_of, settings=settings)
    judged = in_order.select("id", "url", "packed").mapInArrow(judge, from_arrow_schema(VERDICT))
    new = _said(placed.where(sql.col("part").isNull() & ~is_copy), status="'new'")
    unjudged = _said(prints.where(sql.col("reason").isNotNull()), status="'unjudged'", reason="reason")
    copies = _said(
        placed.where(is_copy),
        status="'duplicate'",
        of="at",
        of_id="first",
        rule="'exact'",
        distance="0",
        resemblance="1",
    )
    return judged.union(new).union(unjudged).union(copies)


def _said(rows: DataFrame, **values: str) -> DataFrame:
    """Returns one verdict for all rows.  The values are SQL expressions; what is not given is null."""
    values |= {"id": "id", "url": "url"}
    columns = (sql.expr(values.get(name, "null")).alias(name) for name in VERDICT.names)
    return rows.select(*columns).to(from_arrow_schema(VERDICT))


def duplicates(pages: DataFrame, **given: Unpack[Options]) -> DataFrame:
    """Returns the verdicts on the pages that are near-duplicates of kept ones."""
    return verdicts(pages, **given).where("status = 'duplicate'")


def unique(pages: DataFrame, **given: Unpack[Options]) -> DataFrame:
    """Returns the rows of a table that are no near-duplicates of kept ones, unchanged.

    Arguments and errors are those of `verdicts`.
    """
    dropped = duplicates(pages, **given).select(sql.col("id").alias("__dropped"))
    return pages.join(dropped, task_of(given).columns.id_column == sql.col("__dropped"), "left_anti")


def placed_by(prints: DataFrame, found: DataFrame, detector: Detector, *, shares_chrome: bool) -> DataFrame:
    """Returns the fingerprints that can be judged, with the columns ``part`` and ``unsure``.

    ``part`` is where a page is judged; null if it need not be.  ``found`` are the contents of the pages.
    """
    spark = prints.sparkSession
    host = sql.when((sql.col("host") != "") & sql.lit(shares_chrome), sql.xxhash64("host")).alias("site")
    judged = prints.where(sql.col("reason").isNull()).withColumn("node", node()).withColumn("site", host)
    rows = (
        found.select("order", "node", host, "simhash", "digest", "bands", "mixed")
        .orderBy("order")
        .drop("order")
        .toArrow()
    )
    groups = Groups(rows["mixed"].to_numpy())
    groups.join_equal(hashes(rows["digest"]))
    if detector.finder.own_keys:
        bands = hashes(rows["bands"].combine_chunks().flatten())
        for column in bands.reshape(-1, detector.finder.own_keys).T:
            groups.join_equal(column)
    else:
        keys = hashes(rows["simhash"])
        groups.join_near(keys, *links(spark, np.unique(keys), detector.radius))
    some, unsure, lowest = groups.some, groups.unsure, groups.lowest
    nodes = rows["node"].to_numpy()
    named = pa.table({"node": nodes[unsure]})
    tied = (
        judged.join(spark.createDataFrame(named), "node").select("node", "site").dropna().distinct().toArrow()
    )
    by_node = nodes.argsort()
    at = by_node[nodes[by_node].searchsorted(tied["node"].to_numpy())]
    sure = np.flatnonzero(some & ~unsure & rows["site"].is_valid().to_numpy())
    part, hosts, part_of_host = parts(
        lowest, [(at, hashes(tied["site"])), (sure, hashes(rows["site"].take(sure)))]
    )
    together = pa.table({"node": nodes[some], "unsure": unsure[some], "part": part[some]})
    sites = pa.table({"site": hosts.view(np.int64), "part_of_host": part_of_host})
    return (
        judged.join(spark.createDataFrame(together), "node", "left")
        .join(spark.createDataFrame(sites), "site", "left")
        .withColumn("part", sql.coalesce("part", "part_of_host"))
        .withColumn("unsure", sql.coalesce("unsure", sql.lit(False)))
    )


def verdicts_of(batches: Iterable[pa.RecordBatch], settings: Settings) -> Iterator[pa.RecordBatch]:
    """Yields the verdicts on pages that come part by part, each part in its order.

    The index is a file, since an index in memory remembers the chrome of a thousand hosts only.
    """
    with (
        TemporaryDirectory(prefix="shingleback-") as folder,
        open(f"file:{folder}/index", **settings) as pages,
    ):
        for batch in batches:
            said = []
            for page_id, url, packed in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                v = pages.add(page_id, fingerprint=unpack(packed)[1], url=url)
                said.append(
                    (page_id, url, v.status, v.reason, v.of, v.of_id, v.rule, v.distance, v.resemblance)
                )
            yield batched(said, VERDICT)


def _check_ids(prints: DataFrame) -> None:
    found = prints.groupBy("id").count().where("count > 1 or id is null").orderBy("id").head()
    if found is None:
        return
    what = "no id" if found["id"] is None else f"the id {found['id']!r}"
    rows = "1 row has" if found["count"] == 1 else f"{found['count']} rows have"
    raise DedupError(f"{rows} {what}; name a column by id= that tells each row from all others")
