"""Has the filter of a crawl judge the pages of one task."""

import asyncio
import json
from collections.abc import Iterable, Iterator
from contextlib import closing
from itertools import count, islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa

from dedup.contrib.archives.journal import Journal
from dedup.contrib.archives.judging import judge_all
from dedup.contrib.spark.archives import ORDER
from dedup.contrib.spark.fingerprints import batched
from dedup.droplog.log import as_line
from dedup.filter import Counts
from dedup.fingerprint.detector import Detector
from dedup.index import open_index
from dedup.settings import FilterSettings, IndexSettings

#: Rows for pages that are in the drop log, with the page for which each was dropped, if it was; and the counts of each task.
SAID = pa.schema(
    [*((name, pa.string()) for name in ("id", "of", "of_url", "line", "counts")), ("order", ORDER)]
)
#: Lines that go to Spark at once.
LINES = 10_000


def filtered(
    batches: Iterable[pa.RecordBatch], detector: Detector, plan: IndexSettings, policy: FilterSettings
) -> Iterator[pa.RecordBatch]:
    """Yields what the filter says of pages that come in the order in which they are judged."""
    stats = Counts()
    with (
        TemporaryDirectory(prefix="shingleback-") as name,
        closing(Journal(Path(name, "journal"))) as journal,
    ):
        positions = count()
        for batch in batches:
            pages = zip(*(column.to_pylist() for column in batch.columns), strict=True)
            journal.add_rows((_noted(next(positions), *page) for page in pages), {})
        index = open_index(f"file:{name}/index", detector, **vars(plan))
        journal.begin_verdicts()
        asyncio.run(judge_all(journal, index, stats, policy))
        journal.end_verdicts()
        rows = (
            (page_id, of, of_url, as_line(record).decode(), None, json.loads(order))
            for page_id, order, record, of, of_url in journal.explained()
        )
        while some := list(islice(rows, LINES)):
            yield batched(some, SAID)
    yield batched([(None, None, None, None, json.dumps(stats), None)], SAID)


def _noted(
    position: int, page_id: str, url: str, size: int, packed: bytes, order: dict[str, Any]
) -> tuple[Any, ...]:
    """Returns the row of a journal: the place of the page among all is kept there in the place of its name."""
    return position, float(position), 0, url, 0, json.dumps(order), page_id, size, b"", packed, b""
