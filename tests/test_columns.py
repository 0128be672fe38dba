"""Columns in, columns out: of pandas, polars, pyarrow, numpy and lists."""

import random
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import dedup
from dedup import Detector, Features, clusters, duplicated, duplicates, originals, unique
from tests.support.pages.prose import Prose


def prose(seed: int) -> str:
    return Prose(random.Random(seed)).text(120)


ROWS = [prose(1), None, prose(2), prose(1).upper(), "short", prose(2) + " more", prose(1)]
ORIGINALS = [0, 1, 2, 0, 4, 2, 0]
MASK = [False, False, False, True, False, True, True]

#: Those that have the words of an earlier one.
EQUAL = [False, False, False, True, False, False, True]

ANY_KIND = "text is a {}; allowed: a column of pandas, polars or pyarrow, a numpy array or a list"
KINDS: dict[str, Callable[[list[Any]], Any]] = {
    "list": list,
    "tuple": tuple,
    "numpy": lambda rows: np.array(rows, object),
    "pandas": lambda rows: pd.Series(rows, name="body"),
    "pandas objects": lambda rows: pd.Series(rows, dtype=object, name="body"),
    "pandas of arrow": lambda rows: pd.Series(rows, dtype=pd.ArrowDtype(pa.string()), name="body"),
    "polars": lambda rows: pl.Series("body", rows),
    "pyarrow": lambda rows: pa.table({"body": rows})["body"],
    "pyarrow array": lambda rows: pa.array(rows),
    "list with NaN": lambda rows: [float("nan") if row is None else row for row in rows],
    "numpy with NaN": lambda rows: np.array([np.nan if row is None else row for row in rows], object),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_column_of_any_kind_is_answered_by_one_of_its_kind(kind: str) -> None:
    column = KINDS[kind](ROWS)
    for found, wanted in ((originals(text=column), ORIGINALS), (duplicated(text=column), MASK)):
        plain = kind in ("list", "tuple", "list with NaN")
        assert isinstance(found, np.ndarray if plain else pa.Array if "array" in kind else type(column))
        assert np.asarray(found).tolist() == wanted
        assert getattr(found, "name", None) == getattr(column, "name", None)


def test_rows_are_chosen_by_the_answer_in_each_library() -> None:
    kept = [row for row, dup in zip(ROWS, MASK, strict=True) if not dup]
    pandas = pd.DataFrame({"body": ROWS}).iloc[::-1].iloc[::-1].set_index(pd.Index([*"gfedcba"]))
    chosen = pandas[~duplicated(text=pandas["body"])]
    assert chosen.index.tolist() == ["g", "f", "e", "c"]
    polars = pl.DataFrame({"body": ROWS})
    assert polars.filter(~duplicated(text=polars["body"]))["body"].to_list() == kept
    arrow = pa.table({"body": ROWS})
    assert arrow.filter(pa.compute.invert(duplicated(text=arrow["body"])))["body"].to_pylist() == kept


@pytest.mark.parametrize("kind", ["list", "pandas objects", "polars", "pyarrow"])
def test_columns_of_tokens_and_of_html_with_their_urls(kind: str) -> None:
    tokens = [row and row.lower().split() for row in ROWS]
    assert [*map(int, np.asarray(originals(tokens=KINDS[kind](tokens))))] == ORIGINALS
    html = [row and f"<h1>News</h1><p>{row}" for row in ROWS]
    urls = [f"http://example.org/{number}" for number in range(len(ROWS))]
    found = originals(html=KINDS[kind](html), url=KINDS[kind](urls))
    assert [*map(int, np.asarray(found))] == [
        0,
        1,
        2,
        3,
        4,
        5,
        0,
    ]  # at an address of its own, all has to be equal


def test_settings_are_keywords() -> None:
    assert duplicated(text=ROWS, min_tokens=1000).tolist() == EQUAL
    assert duplicated(text=ROWS, min_tokens=1, features=Features(slots=64)).tolist() == MASK


SHORT = ["a b c", "other words", "A  B c", None, "", "a b c", "\u00a0", "words other"]


@pytest.mark.parametrize("method", ["simhash", "minhash", "supershingle"])
def test_of_equal_short_texts_one_is_kept(method: str) -> None:
    settings = {"method": method, "min_resemblance": 0.9} if method != "simhash" else {}
    assert originals(text=SHORT, **settings).tolist() == [0, 1, 0, 3, 4, 0, 6, 7]
    assert clusters(text=SHORT, **settings).tolist() == [0, 1, 0, 3, 4, 0, 6, 7]
    assert clusters(text=[*ROWS, "SHORT"], **settings).tolist()[4:] == [4, 2, 0, 4]
    assert duplicates(text=SHORT, **settings)["rule"].tolist() == ["exact", "exact"]
    texts = [text for text in SHORT if text is not None]
    assert [*unique(texts, **settings)] == ["a b c", "other words", "", "\u00a0", "words other"]
    assert originals(text=SHORT, keep="longest", **settings).tolist() == [0, 1, 0, 3, 4, 0, 6, 7]


def test_short_texts_of_two_scopes_are_two() -> None:
    urls = ["http://a/1", "http://a/2", "http://b/1"]
    assert duplicated(["a b c"] * 3, url=urls, scope="host").tolist() == [False, True, False]


def test_the_first_argument_is_the_text() -> None:
    for kind in ("list", "pandas", "polars", "pyarrow"):
        column = KINDS[kind](ROWS)
        assert KINDS["list"](duplicated(column)) == KINDS["list"](duplicated(text=column))
        assert KINDS["list"](originals(column)) == KINDS["list"](clusters(column))
    assert duplicates(ROWS)["row"].tolist() == [3, 5, 6]
    with pytest.raises(TypeError, match="of html, text and tokens, 2 are given; give one"):
        duplicated(ROWS, text=ROWS)
    with pytest.raises(TypeError, match=ANY_KIND.format("DataFrame")):
        duplicated(pd.DataFrame({"body": ROWS}))


@pytest.mark.parametrize(
    ("wrong", "kind"),
    [
        (pd.DataFrame({"body": ["a"]}), "DataFrame"),
        (pl.DataFrame({"body": ["a"]}), "DataFrame"),
        (pa.table({"body": ["a"]}), "Table"),
        ({"body": ["a"]}, "dict"),
        ("a text", "str"),
        (b"bytes", "bytes"),
        (7, "int"),
    ],
)
def test_unique_refuses_what_is_no_list_of_items(wrong: Any, kind: str) -> None:
    with pytest.raises(
        TypeError, match=f"^items is a {kind}; allowed: a list or another iterable of items, such as "
    ):
        unique(wrong)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({}, "of html, text and tokens, none are given; give one"),
        ({"text": ["a"], "html": ["a"]}, "of html, text and tokens, 2 are given; give one"),
        ({"text": ["a"], "url": ["a", "b"]}, "text has 1 rows, and url has 2"),
        ({"text": ["a", 7]}, "row 1: text is 7; allowed: str"),
        ({"text": 7}, ANY_KIND.format("int")),
        ({"text": pl.DataFrame()}, ANY_KIND.format("DataFrame")),
    ],
)
def test_what_is_no_column_is_refused_in_one_line(wrong: dict[str, Any], says: str) -> None:
    with pytest.raises(TypeError) as error:
        duplicated(**wrong)
    assert str(error.value) == says


@pytest.mark.parametrize("kind", KINDS)
def test_of_rows_alike_the_one_that_is_asked_for_is_kept(kind: str) -> None:
    column, when = KINDS[kind](ROWS), KINDS["polars"]([3, 9, 5, 7, 1, 2, None])
    longest = originals(text=column, keep="longest")
    assert np.asarray(longest).tolist() == [0, 1, 5, 0, 4, 5, 0]
    for newest in (originals(text=column, keep=when), originals(text=column, keep="newest", fetched=when)):
        assert np.asarray(newest).tolist() == [3, 1, 2, 3, 4, 2, 3]
    assert np.asarray(originals(text=column, fetched=when)).tolist() == [0, 1, 5, 0, 4, 5, 0]
    assert np.asarray(clusters(text=column, keep="longest")).tolist() == [0, 1, 5, 0, 4, 5, 0]


def test_items_alike_are_chosen_as_rows_are() -> None:
    rows = [{"n": n, "body": row or "", "score": n % 4} for n, row in enumerate(ROWS)]

    def kept(**how: Any) -> list[int]:
        return [row["n"] for row in unique(rows, text=lambda row: str(row["body"]), **how)]

    assert kept() == [0, 1, 2, 4]
    assert kept(keep="longest") == [0, 1, 4, 5]
    assert (
        kept(keep=lambda row: row["score"])
        == kept(keep="newest", fetched=lambda row: row["score"])
        == [1, 2, 3, 4]
    )


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"keep": "best"}, "keep is 'best'; allowed: first, longest, newest, or a key for each page"),
        (
            {"keep": "newest"},
            "keep is 'newest', but it is not said when the pages were fetched; give fetched, too",
        ),
    ],
)
def test_what_is_kept_is_said_in_words_that_exist(wrong: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match="keep") as error:
        originals(text=ROWS, **wrong)
    assert str(error.value) == says


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rows", [[], [None, None]])
def test_of_columns_without_a_value_nothing_is_a_duplicate(kind: str, rows: list[Any]) -> None:
    column = KINDS[kind](rows)
    for function in (clusters, originals):
        assert np.asarray(function(text=column)).tolist() == [*range(len(rows))]
    assert np.asarray(duplicated(text=column)).tolist() == [False] * len(rows)


def test_an_empty_table_has_the_same_kinds() -> None:
    one, none = (duplicates(text=pa.array([prose(1), prose(n)])) for n in (1, 2))
    assert (len(one), len(none)) == (1, 0)
    assert one.schema.equals(none.schema)


def test_what_pandas_has_in_the_place_of_a_value_is_none() -> None:
    for missing in (pd.NA, pd.NaT, np.nan, None):
        assert originals(text=[prose(1), missing, prose(1)]).tolist() == [0, 1, 0]
        assert originals(text=[prose(1)] * 3, keep=[missing, 2, 1]).tolist() == [1, 1, 1]
        scored = [{"score": score} for score in (missing, 1, 2)]
        kept = unique(scored, text=lambda row: prose(1), keep=lambda row: row["score"])
        assert [row["score"] for row in kept] == [2]


@pytest.mark.parametrize("kind", ["list", "pandas", "polars", "pyarrow array"])
def test_clusters_are_called_by_ids(kind: str) -> None:
    texts = [prose(1), "short", prose(1), prose(2)]
    found = clusters(text=KINDS[kind](texts), id=KINDS[kind]([*"bacd"]))
    assert np.asarray(found).tolist() == [*"babd"]


def test_ids_of_clusters_may_be_of_any_kind() -> None:
    texts = [prose(1), "short", prose(1), prose(2)]
    assert clusters(text=texts, id=[("b", 1), ("a", 2), 3, None]).tolist() == [
        ("b", 1),
        ("a", 2),
        ("b", 1),
        None,
    ]
    with pytest.raises(TypeError, match="text has 4 rows, and id has 3"):
        clusters(text=texts, id=[1, 2, 3])


def edited(copies: int) -> list[str]:
    """Stories, each with words left out: none, few or many."""
    rng = random.Random(3)
    stories = [prose(seed).split() for seed in range(8)]
    texts = [
        " ".join(word for word in rng.choice(stories) if rng.random() > rng.choice((0, 0, 0.02, 0.05)))
        for _ in range(copies)
    ]
    return texts + texts[:3]


@pytest.mark.parametrize("method", ["simhash", "minhash", "supershingle"])
@pytest.mark.parametrize("keep", ["first", "longest"])
def test_rows_are_judged_as_pages_that_are_added_one_by_one(method: str, keep: str) -> None:
    texts = [*edited(120), *map(prose, range(4, 40)), *["Not found", "", "Not found"]]
    order = sorted(range(len(texts)), key=lambda n: -len(texts[n].split()) if keep == "longest" else n)
    with dedup.open(method=method, min_tokens=0) as pages:
        added = {n: pages.add(str(n), text=texts[n]).of_id for n in order}
    wanted = [n if (of := added[n]) is None else int(of) for n in range(len(texts))]
    assert originals(text=texts, method=method, min_tokens=0, keep=keep).tolist() == wanted
    assert len(set(wanted)) < len(texts) - 20


@pytest.mark.parametrize("method", ["simhash", "minhash", "supershingle"])
def test_clusters_are_those_that_brute_force_finds(method: str) -> None:
    texts = edited(60)
    detector = Detector(method=method)
    prints = [detector.fingerprint_text(text) for text in texts]
    alike = [
        (a, b)
        for a, one in enumerate(prints)
        for b, other in enumerate(prints[:a])
        if detector.compare(one, other).duplicate
    ]
    wanted = [*range(len(texts))]
    for _ in texts:  # chain by chain
        for a, b in alike:
            wanted[a] = wanted[b] = min(wanted[a], wanted[b])
    assert clusters(text=texts, method=method).tolist() == wanted
    assert len(set(wanted)) < len(texts) - 3


@pytest.mark.parametrize("kind", ["list", "pandas", "polars", "pyarrow"])
def test_near_duplicates_and_their_scores_are_a_table(kind: str) -> None:
    found = duplicates(text=KINDS[kind](ROWS), id=KINDS[kind]([*"abcdefg"]))
    table = {
        name: np.asarray(found[name]).tolist() for name in ("row", "of", "id", "of_id", "rule", "distance")
    }
    assert table["row"] == [3, 5, 6]
    assert (table["of"], table["id"], table["of_id"]) == ([0, 2, 0], ["d", "f", "g"], ["a", "c", "a"])
    assert (table["rule"][::2], table["distance"][::2]) == (["exact", "exact"], [0, 0])
    assert np.asarray(found["resemblance"])[1] > 0.9
    assert len(duplicates(text=KINDS[kind](["a"]))["row"]) == 0


def test_without_narwhals_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "narwhals.stable.v2", None)
    assert duplicated(text=ROWS).tolist() == MASK
    with pytest.raises(ImportError, match=r"pip install 'shingleback\[frames\]'$"):
        duplicated(text=pl.Series(ROWS))
