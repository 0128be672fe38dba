"""Tables of pages on Spark: the verdicts of one machine, however the table is partitioned."""

import os
import random
import shutil
import sys
from collections.abc import Iterator
from typing import Any

import pytest

import dedup
from tests.support.pages.shops import COPIES, Shop

pytest.importorskip("pyspark", reason="PySpark is not installed: dedup.spark is NOT tested")
if shutil.which("java") is None:
    pytest.skip("Java is not installed: dedup.spark is NOT tested", allow_module_level=True)

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("default")]
SAID = ("status", "reason", "of", "of_id", "rule", "distance", "resemblance")


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """Spark in this process and one of Java's, with two threads; a task may fail once."""
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.log.level": "OFF",
    }
    builder = SparkSession.builder.master("local[2,2]").appName("tests")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    yield session
    session.stop()


def pages_of_shops() -> list[dict[str, Any]]:
    """Pages of two shops and their mirrors, in any order, a third of them copies, with some of no use."""
    rng, rows = random.Random(5), []
    for seed, (chrome, own) in enumerate([(300, 25), (600, 150)]):
        shop = Shop(f"shop{seed}.example", chrome, own, seed=seed, products=40)
        pages = [shop.page(product, rng) for product in range(40)]
        for kind in COPIES:
            pages += [shop.copy(product, kind, rng) for product in rng.sample(range(40), 4)]
        rows += [{"url": page.url, "html": page.html} for page in pages]
    rows += [{"url": f"http://other.example/{n}", "html": rows[n]["html"]} for n in (3, 41, 45)]
    rows += [{"url": "http://other.example/short", "html": "<p>Not found"}, {"url": "", "html": None}]
    rng.shuffle(rows)
    return [{"n": n, "name": f"page {n}", **row} for n, row in enumerate(rows)]


def alone(rows: list[dict[str, Any]], **settings: Any) -> dict[str, tuple[Any, ...]]:
    """What one machine says of pages in their order."""
    with dedup.open(**settings) as pages:
        said = {row["name"]: pages.add(row["name"], html=row["html"] or "", url=row["url"]) for row in rows}
    return {name: tuple(getattr(verdict, field) for field in SAID) for name, verdict in said.items()}


def told(verdicts: Any) -> dict[str, tuple[Any, ...]]:
    return {row["id"]: tuple(row[field] for field in SAID) for row in verdicts.collect()}


@pytest.mark.parametrize("partitions", [1, 5])
def test_the_verdicts_are_those_of_one_machine(spark: Any, partitions: int) -> None:
    from dedup.spark import unique, verdicts

    rows = pages_of_shops()
    wanted = alone(rows)
    assert {says[0] for says in wanted.values()} == {"new", "duplicate", "unjudged"}
    assert {says[4] for says in wanted.values()} == {None, "exact", "simhash"}
    shuffled = random.Random(partitions).sample(rows, len(rows))
    table = spark.createDataFrame(shuffled).repartition(partitions)
    named = {"html": "html", "url": "url", "id": "name", "order": "n"}
    assert told(verdicts(table, **named)) == wanted
    if partitions > 1:
        kept = {row["name"] for row in unique(table, **named).collect()}
        assert kept == {name for name, says in wanted.items() if says[0] != "duplicate"}
