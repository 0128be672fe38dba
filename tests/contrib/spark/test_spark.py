"""Tables of pages on Spark: the verdicts of one machine, however the table is partitioned."""

import doctest
import json
import os
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

import dedup
from dedup.contrib.archives import Capture, Cleaning, fingerprint
from dedup.contrib.archives.packing import pack
from dedup.errors import DedupError, SettingsError
from dedup.fingerprint.detector import Detector
from dedup.settings import FilterSettings, IndexSettings
from tests.contrib.archives.test_archive import record
from tests.support import ROOT
from tests.support.arrivals import VERDICT, check, watch
from tests.support.pages.shops import COPIES, Shop
from tests.support.processes import Scrapy
from tests.support.waiting import LIMIT

pytest.importorskip("pyspark", reason="PySpark is not installed: dedup.contrib.spark is NOT tested")
if shutil.which("java") is None:
    pytest.skip("Java is not installed: dedup.contrib.spark is NOT tested", allow_module_level=True)

import pyarrow as pa
from pyspark.sql import SparkSession

from dedup.contrib.spark import clusters, fingerprints, near_pairs, unique, verdicts
from dedup.contrib.spark.archives import ORDER
from dedup.contrib.spark.cleaning import Spark
from dedup.contrib.spark.filtered import filtered
from dedup.contrib.spark.pages import task_of
from dedup.contrib.spark.session import ENDED
from dedup.contrib.spark.verdicts import verdicts_of

pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("default")]
SAID = ("status", "reason", "of", "of_id", "rule", "distance", "resemblance")


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """Spark in this process and one of Java's, with two threads; a task may fail once."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.log.level": "OFF",
        # What is quick to start, since the tests take no longer than that.
        "spark.sql.codegen.wholeStage": "false",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
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


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    return pages_of_shops()


NAMED = {"html": "html", "url": "url", "id": "name", "order": "n"}


def test_verdicts_of_one_machine(spark: Any, rows: list[dict[str, Any]], tmp_path: Path) -> None:
    wanted = alone(rows)
    assert {says[0] for says in wanted.values()} == {"new", "duplicate", "unjudged"}
    assert {says[4] for says in wanted.values()} == {None, "exact", "simhash"}
    died = str(tmp_path / "died")

    def dies_once(batches: Any) -> Any:
        for batch in batches:
            yield batch
            if 60 in batch.column("n").to_pylist() and not os.path.exists(died):
                Path(died).touch()
                os._exit(1)

    table = spark.createDataFrame(random.Random(1).sample(rows, len(rows))).repartition(3)
    found = verdicts(table.mapInArrow(dies_once, table.schema), **NAMED)
    assert told(found) == wanted
    assert os.path.exists(died)


def test_unique(spark: Any, rows: list[dict[str, Any]]) -> None:
    wanted = {
        name for name, says in alone(rows, chrome=False, scope="host").items() if says[0] != "duplicate"
    }
    table = spark.createDataFrame(rows).repartition(1)
    found = unique(table, **NAMED, chrome=False, scope="host")
    assert found.columns == table.columns
    assert {row["name"] for row in found.collect()} == wanted


def test_keep(spark: Any) -> None:
    story = "the keeper lights the lamp at dusk and the ships far out turn away from the rocks in time " * 3
    texts = [story, story + "Yes!", story.upper(), "Not found"]
    rows = [
        {"id": n, "body": text, "day": f"2026-11-0{5 - n}", "score": n % 3} for n, text in enumerate(texts)
    ]
    table = spark.createDataFrame(rows)
    for how in ({}, {"keep": "longest"}, {"keep": "newest", "order": "day"}, {"keep": "score"}):
        name = how.get("keep", "first")
        keep = [row["score"] for row in rows] if name == "score" else name
        fetched = [row["day"] for row in rows] if name == "newest" else None
        wanted = dedup.originals(text=texts, keep=keep, fetched=fetched).tolist()
        found = verdicts(table, text="body", id="id", **how).collect()
        assert {int(row.id): int(row.of_id or row.id) for row in found} == dict(enumerate(wanted)), how


def test_pairs_and_clusters(spark: Any, rows: list[dict[str, Any]]) -> None:
    with dedup.open() as pages:
        detector = pages.detector
        made = {}  # of each content, the first page
        for row in rows:
            page = pages.fingerprint(html=row["html"] or "", url=row["url"])
            if page.reason is None and page not in made.values():
                made[row["name"]] = page
    wanted = set()
    for (left, a), (right, b) in combinations(made.items(), 2):
        if detector.is_candidate(a, b):
            found = detector.compare(a, b)
            wanted.add((left, right, found.distance, found.resemblance, found.duplicate))
    prints = fingerprints(spark.createDataFrame(rows), **NAMED).cache()
    pairs = near_pairs(prints)
    assert {tuple(row) for row in pairs.collect()} == wanted
    assert {row[4] for row in wanted} == {False, True}
    cluster = {row["id"]: row["cluster"] for row in clusters(prints).collect()}
    assert len(cluster) == len(rows)
    for left, right, *_, duplicate in wanted:
        if duplicate:
            assert cluster[left] == cluster[right]
    alike = {name for pair in wanted if pair[4] for name in pair[:2]}
    assert all(cluster[name] == name for name in made if name not in alike)


def test_method_of_other_keys(spark: Any, rows: list[dict[str, Any]]) -> None:
    table = spark.createDataFrame(rows)
    assert told(verdicts(table, **NAMED, method="minhash")) == alone(rows, method="minhash")


def test_mistakes_in_one_line(spark: Any) -> None:
    table = spark.createDataFrame([("a", "text", 1)], "url string, body string, n int")
    mistakes: list[tuple[Any, dict[str, Any], type[Exception], str]] = [
        ([1], {"text": "body"}, TypeError, "pages is a list; allowed: a DataFrame of PySpark"),
        (table, {"url": "url"}, TypeError, "of html, text and tokens, none are given; give one"),
        (table, {"text": "body"}, TypeError, "neither id nor url is given; give a column that tells each"),
        (table, {"text": "bodi", "id": "n"}, ValueError, "text names the column 'bodi', which the table has not; is body"),
        (table, {"text": "n", "url": "url"}, TypeError, "text names the column 'n' of int; allowed: strings"),
        (table, {"text": 7, "url": "url"}, TypeError, "text is 7; allowed: the name of a column"),
        (table, {"text": "body", "url": "url", "order": ["m"]}, ValueError, "order names the column 'm', which"),
        (table, {"text": "body", "url": "url", "max_distence": 3}, TypeError, "there is no setting max_distence; did you"),
        (table, {"text": "body", "url": "url", "max_distance": 9}, SettingsError, "max_distance is 9; allowed: a whole"),
    ]  # fmt: skip
    for pages, given, kind, says in mistakes:
        with pytest.raises(kind) as caught:
            fingerprints(pages, **given)
        assert str(caught.value).startswith(says)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("ids", "says"),
    [
        (["a", "b", "a"], "2 rows have the id 'a'; name a column by id= that tells each row from all others"),
        ([None, "b"], "1 row has no id; name a column by id= that tells each row from all others"),
    ],
)
def test_equal_or_missing_ids(spark: Any, ids: list[str | None], says: str) -> None:
    table = spark.createDataFrame([(each, "text") for each in ids], "name string, body string")
    with pytest.raises(DedupError, match=f"^{re.escape(says)}$"):
        verdicts(table, text="body", id="name")


def test_archives_as_by_one_machine(spark: Any, rows: list[dict[str, Any]], tmp_path: Path) -> None:
    pages = [{**row, "fetched": row["n"] // 40} for row in rows if row["html"]]
    wall = "<title>Log in</title><p>" + "you have to log in before you can read this page of ours " * 9
    pages += [{"url": f"http://walled.example/story/{name}", "html": wall} for name in "abcdefghijkl"]
    inputs = [tmp_path / "one.jsonl", tmp_path / "two.warc"]
    inputs[0].write_text("no JSON\n" + "".join(f"{json.dumps(page)}\n" for page in pages[::2]))
    inputs[1].write_bytes(
        b"".join(record(page["url"] or "http://else.example/", page["html"]) for page in pages[1::2])
    )
    said = []
    for name, engine in (("alone", None), ("spark", Spark("local[2]"))):
        kept, log = tmp_path / f"{name}.jsonl", tmp_path / f"{name}.log"
        result = Cleaning([*map(str, inputs)], str(kept), str(log), engine=engine).run()
        counts = {name: value for name, value in result.stats.items() if "/seconds/" not in name}
        lines = [json.loads(line) | {"time": ""} for line in log.read_text().splitlines()]
        said.append((kept.read_bytes(), lines, counts, result.damage, result.others))
    assert said[1] == said[0]
    assert counts["dedup/unjudged/alarm"] > 0
    assert counts["dedup/dropped"] > 20


def test_every_setting_arrives(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    page = Capture("http://a.org/", b"<p>" + b"story " * 50)
    turn = pa.array([(0, 0, "", 0, 0, 0)], ORDER)

    def judge(name: str, value: Any) -> None:
        found = task_of({"text": "body", name: value})  # type: ignore[misc]
        packed = pack(*fingerprint(page, found.detector))
        rows = pa.RecordBatch.from_pydict({"id": ["0:0"], "url": [page.url], "packed": [packed]})
        assert [batch["status"].to_pylist() for batch in verdicts_of([rows], found.settings)] == [["new"]]

    def clean(name: str, value: Any) -> None:
        plan, policy = (
            kind(**{name: value} if name in kind.settings() else {})
            for kind in (IndexSettings, FilterSettings)
        )
        packed = pack(*fingerprint(page, Detector()))
        columns = {"id": ["0:0"], "url": [page.url], "size": [300], "packed": [packed], "order": turn}
        [counts] = filtered([pa.RecordBatch.from_pydict(columns)], Detector(), plan, policy)
        assert json.loads(counts["counts"][0].as_py())["dedup/new"] == 1

    seen = watch(monkeypatch)
    check(seen, VERDICT, judge, tmp_path)
    check(seen, (*IndexSettings.settings(), *FilterSettings.settings()), clean, tmp_path)


def test_spark_that_cannot_start(tmp_path: Path) -> None:
    source = tmp_path / "pages.jsonl"
    source.write_text('{"text": "one"}\n')
    without_java = {"PATH": "", "JAVA_HOME": ""}
    for environment, says in (
        (
            {},
            "--master is 'nonsense', where Spark can't be started: Master must either be yarn or start with",
        ),
        (without_java, "--engine spark needs Java 17, such as Debian's openjdk-17-jre-headless"),
    ):
        arguments = "dedup", source, "--engine", "spark", "--master", "nonsense"
        assert Scrapy(*arguments, output=tmp_path, **environment).wait(LIMIT) == 2
        told = (tmp_path / "stderr").read_text()
        assert told.startswith(f"dedup: {says}")
        assert told.count("\n") == 1


def test_documented_example(spark: Any) -> None:
    text = (ROOT / "docs" / "contrib" / "spark.md").read_text()
    blocks = re.sub(r"^```pycon\n(.*?)^```", r"\1", text, flags=re.MULTILINE | re.DOTALL)
    example = doctest.DocTestParser().get_doctest(
        blocks, {"spark": spark}, "spark.md", "docs/contrib/spark.md", 0
    )
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    runner.run(example)
    assert runner.summarize(verbose=False).failed == 0
    assert runner.tries >= 5


def test_java_ends() -> None:
    """As it does when it runs out of memory."""
    program = """if True:
        from dedup.contrib.spark.session import session

        with session("local[1]") as spark:
            spark.sparkContext._gateway.proc.kill()
            spark.sparkContext._gateway.proc.wait()
            spark.range(3).count()
    """
    done = subprocess.run(
        [sys.executable, "-c", program], check=False, capture_output=True, text=True, cwd=ROOT
    )
    assert done.stderr.splitlines()[-1] == f"dedup.errors.DedupError: {ENDED}"
