"""Tables of pages on Spark: their fingerprints, the near pairs among them, and which pages are near-duplicates.

The verdicts are those of `dedup.open` and its like on one machine, page by page, whatever the partitions.
"""

try:
    import pyspark as _pyspark  # noqa: F401
except ImportError:
    raise ImportError("dedup.spark needs PySpark, and Java 17: pip install 'shingleback[spark]'") from None

from dedup.spark.archives import archives
from dedup.spark.fingerprints import fingerprints
from dedup.spark.near import clusters, near_pairs
from dedup.spark.verdicts import duplicates, unique, verdicts

__all__ = ["archives", "clusters", "duplicates", "fingerprints", "near_pairs", "unique", "verdicts"]
