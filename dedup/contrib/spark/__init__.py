"""Finds near-duplicates in tables of pages on Spark.

Each page gets the same verdict as from `dedup.open` on one machine, however the table is partitioned.
"""

try:
    import pyspark as _pyspark  # noqa: F401
except ImportError:
    raise ImportError(
        "dedup.contrib.spark needs PySpark, and Java 17: pip install 'shingleback[spark]'"
    ) from None

from dedup.contrib.spark.archives import archives
from dedup.contrib.spark.fingerprints import fingerprints
from dedup.contrib.spark.near import clusters, near_pairs
from dedup.contrib.spark.verdicts import duplicates, unique, verdicts

__all__ = ["archives", "clusters", "duplicates", "fingerprints", "near_pairs", "unique", "verdicts"]
