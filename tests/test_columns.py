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

from dedup import Features, duplicated, originals
from tests.support.pages.prose import Prose


def prose(seed: int) -> str:
    return Prose(random.Random(seed)).text(120)


ROWS = [prose(1), None, prose(2), prose(1).upper(), "short", prose(2) + " more", prose(1)]
ORIGINALS = [0, 1, 2, 0, 4, 2, 0]
MASK = [False, False, False, True, False, True, True]

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
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_column_of_any_kind_is_answered_by_one_of_its_kind(kind: str) -> None:
    column = KINDS[kind](ROWS)
    for found, wanted in ((originals(text=column), ORIGINALS), (duplicated(text=column), MASK)):
        assert type(found) is (np.ndarray if kind in ("list", "tuple") else type(column))
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


def test_a_frame_that_was_filtered_keeps_its_own_labels() -> None:
    frame = pd.DataFrame({"body": ROWS})
    some = frame[frame.index % 2 == 0]
    assert originals(text=some["body"]).to_dict() == {0: 0, 2: 1, 4: 2, 6: 0}


@pytest.mark.parametrize("kind", ["list", "pandas objects", "polars", "pyarrow"])
def test_columns_of_tokens_and_of_html_with_their_urls(kind: str) -> None:
    tokens = [row and row.lower().split() for row in ROWS]
    assert [*map(int, np.asarray(originals(tokens=KINDS[kind](tokens))))] == ORIGINALS
    html = [row and f"<h1>News</h1><p>{row}" for row in ROWS]
    urls = [f"http://example.org/{number}" for number in range(len(ROWS))]
    found = originals(html=KINDS[kind](html), url=KINDS[kind](urls))
    assert [*map(int, np.asarray(found))] == [0, 1, 2, 0, 4, 5, 0]  # that of a host has to match in its own


def test_settings_are_keywords() -> None:
    assert not duplicated(text=ROWS, min_tokens=1000).any()
    assert duplicated(text=ROWS, min_tokens=1, features=Features(slots=64)).tolist() == MASK


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


def test_without_narwhals_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "narwhals.stable.v2", None)
    assert duplicated(text=ROWS).tolist() == MASK
    with pytest.raises(ImportError, match=r"pip install 'shingleback\[frames\]'$"):
        duplicated(text=pl.Series(ROWS))
