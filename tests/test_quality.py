"""How good the verdicts are on collections whose truth is known: benchmarks/quality."""

import asyncio
import gzip
import io
import json
import random
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from benchmarks.quality.__main__ import main
from benchmarks.quality.features import Ablated, ablated
from benchmarks.quality.measures import Stream, measure_identity
from benchmarks.quality.truth import read_collection
from crawler.demo import Site
from dedup import Detector, Fingerprint, SettingsError, open_index


def evaluate(*arguments: object) -> str:
    """What it prints."""
    printed = io.StringIO()
    with redirect_stdout(printed):
        main(list(map(str, arguments)))
    return printed.getvalue()


@pytest.fixture(scope="module")
def collection(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo site's pages and which of them are alike."""
    folder = tmp_path_factory.mktemp("collection")
    site = Site()
    paths = [path for path in site.truth if "?" not in path and not path.endswith("/")][:60]
    for path in paths:
        page = folder / f"demo{path}"
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_bytes(site.render(path, 1)[2])
    with gzip.open(folder / "demo.docs.txt.gz", "wt") as docs:
        docs.writelines(f"demo{path}\n" for path in paths)
    with gzip.open(folder / "demo.pairs.tsv.gz", "wt") as truth:
        truth.write("a\tb\tJ3\n")
        for at, a in enumerate(paths):
            for b in paths[:at]:
                if site.truth[a] == site.truth[b]:
                    truth.write(f"demo{a}\tdemo{b}\t0.95\n")
    return folder / "demo.pairs.tsv.gz"


def test_a_stream_is_filtered_as_by_an_index() -> None:
    rng = random.Random(3)
    stored = [rng.getrandbits(64) for _ in range(60)]
    sketches = [rng.randbytes(136) for _ in range(3)]
    fingerprints = []
    for _ in range(400):
        simhash = rng.choice(stored) ^ (1 << rng.randrange(64)) ^ (1 << rng.randrange(64))
        fingerprints.append(Fingerprint(simhash, rng.choice(sketches), 99, 0, digest=simhash))
    fingerprints[7] = Fingerprint(None, b"", 0, 0, "empty")
    detector = Detector(max_distance=4, min_resemblance=0.5)

    async def claims() -> list[int]:
        index = open_index("memory:", detector)
        verdicts = [await index.claim(str(at), str(at), page) for at, page in enumerate(fingerprints)]
        await index.close()
        return [int(verdict.of) if verdict.of else -1 for verdict in verdicts]

    assert Stream(fingerprints, detector).filter(4, 0.5).tolist() == asyncio.run(claims())


def test_a_collection_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"x\.pairs\.tsv\.gz"):
        read_collection(tmp_path / "x.pairs.tsv.gz")


def test_a_collection_is_evaluated_and_every_index_agrees(collection: Path, redis_socket: Path) -> None:
    options = ("-s", "DEDUP_CHROME=False", "-s", f"DEDUP_INDEX=unix://{redis_socket}")
    done = evaluate(collection, "--root", collection.parent, "--through-index", *options)
    assert "60 pages" in done
    assert "the same verdicts" in done
    (own,) = [line.split() for line in done.splitlines() if line.startswith("*")]
    assert (own[1], own[2], own[4], own[-2]) == ("6", "0.750", "0", "1.0000")


def test_the_measure_by_identity_tells_pages_by_their_names() -> None:
    names, alike = (
        ["a", "a", "b", "b"],
        {0: {1: 0.95, 2: 0.92}, 1: {0: 0.95}, 2: {0: 0.92, 3: 1.0}, 3: {2: 1.0}},
    )
    judged = [True] * 4

    def found(*of: int) -> tuple[int, ...]:
        return measure_identity(of, range(4), names, alike, judged)[1:]

    assert found(-1, 0, -1, 2) == (2, 0, 0, 2, 0)  # drops, false, far, could, missed
    assert found(-1, -1, -1, -1) == (0, 0, 0, 2, 2)
    assert found(-1, 0, 0, -1) == (2, 1, 0, 1, 0)  # b was not kept before: it could not be found
    assert found(-1, 0, 1, 1) == (3, 2, 2, 1, 0)
    assert (
        measure_identity([-1, -1], [1, 0], ["a", "a"], {0: {1: 1.0}, 1: {0: 1.0}}, [True, False]).could == 0
    )


def test_a_collection_is_evaluated_by_identity(collection: Path, tmp_path: Path) -> None:
    with gzip.open(collection.with_name("demo.docs.txt.gz"), "rt") as lines:
        paths = [line.strip() for line in lines]
    truth = Site().truth
    with gzip.open(tmp_path / "demo.same.docs.txt.gz", "wt") as docs:
        for path in (
            paths
        ):  # the months of a calendar are told apart by their addresses, where nothing is fetched again
            name = path if "/calendar/" in path else truth[path.removeprefix("demo")]
            docs.write(f"{path}\t{name}\n")
    same = tmp_path / "demo.same.pairs.tsv.gz"
    same.write_bytes(collection.read_bytes())
    figures = tmp_path / "figures.json"
    evaluate(same, "--root", collection.parent, "--json", figures)
    rows = json.loads(figures.read_text())["rows"]
    assert [row["seed"] for row in rows] == [42, 43, 44, 45, 46, None]
    # Of 28 copies, the first ones in each of two folders are kept until it is known what the folder holds.
    assert all(row["false"] == 0 < row["drops"] and row["recall"] > 0.4 for row in rows)


def test_default_switches_make_a_crawls_fingerprints() -> None:
    page = Site().render("/articles/the-fog-signal", 1)[2]
    assert Detector(features=Ablated()).fingerprint(page) == Detector().fingerprint(page)
    for switched in (
        "simhash_size=2",
        "simhash_urls=True",
        "weights=one",
        "weights=log",
        "sketch_urls=False",
    ):
        detector = Detector(features=ablated(switched))
        assert detector.fingerprint(page) != Detector().fingerprint(page)
        assert detector.parameters != Detector().parameters
