"""Puts equal pages of a table together before anything is compared."""

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

from dedup.fingerprint.shingles import Hashes


def kept_by_spark(prints: DataFrame) -> DataFrame:
    """Returns the same fingerprints, which Spark then computes only once."""
    return prints if prints.is_cached else prints.persist(StorageLevel.MEMORY_AND_DISK)


def node() -> Column:
    """Returns what only equal pages of one scope share: the digests of their tokens and of their markup."""
    return sql.col("digest").bitwiseXOR(sql.col("markup")).bitwiseXOR(sql.col("scope"))


def contents(prints: DataFrame) -> DataFrame:
    """Returns a row for each content of the pages that can be judged.

    Its columns are ``node``; ``order``, ``id``, ``url``, ``host`` and ``sketch`` of its first page; ``simhash``, ``digest`` and
    ``bands`` as an index files them; ``pages``, their number; and ``mixed``: true if somebody has forged different contents
    with one digest.
    """
    scope = sql.col("scope")
    first = sql.struct(
        "id",
        "url",
        "host",
        "sketch",
        sql.col("simhash").bitwiseXOR(scope).alias("simhash"),
        sql.col("digest").bitwiseXOR(scope).alias("digest"),
        sql.transform("bands", lambda band: band.bitwiseXOR(sql.col("scope"))).alias("bands"),
    )
    judged = prints.where(sql.col("reason").isNull()).withColumn("node", node())
    grouped = judged.groupBy("node").agg(
        sql.min_by(first, "order").alias("first"),
        sql.min("order").alias("order"),
        sql.count("*").alias("pages"),
        (sql.min("sketch") != sql.max("sketch")).alias("mixed"),
    )
    return grouped.select("node", "order", "first.*", "pages", "mixed")


def hashes(column: pa.ChunkedArray) -> Hashes:
    """Returns longs without nulls as unsigned numbers: uint64, shape (n,)."""
    values: Hashes = column.to_numpy().view("uint64")
    return values
