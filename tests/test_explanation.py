"""`dedup.explain`: why two pages are near-duplicates or are not."""

import random
import re
from html import unescape
from pathlib import Path

import pytest

import dedup
from tests.support.pages.prose import Prose
from tests.support.processes import scrapy


@pytest.mark.parametrize("share", [0.0, 0.02, 0.05, 0.2, 1.0])
def test_a_pair_is_explained_as_it_is_judged(share: float) -> None:
    rng = random.Random(7)
    words = Prose(rng).text(300).split()
    other = " ".join(f"x{n}" if rng.random() < share else word for n, word in enumerate(words))
    found = dedup.explain(" ".join(words), other)
    with dedup.open() as pages:
        pages.add("a", text=" ".join(words))
        verdict = pages.add("b", text=other)
    assert found.duplicate == (verdict.status == "duplicate")
    assert (found.distance, found.resemblance) == (
        verdict.distance,
        verdict.resemblance,
    ) or not found.duplicate
    assert {token[0] for token in found.only[1]} <= {"x"}
    assert found.containment[0] == pytest.approx(1.0 if not share else found.containment[1], abs=0.1)


def test_the_words_are_those_of_scrapy_compare(tmp_path: Path) -> None:
    rng = random.Random(8)
    texts = [Prose(rng).text(120) for _ in range(2)]
    pages = [f"<title>News</title><nav>Home About</nav><h1>{text[:20]}</h1><p>{text}" for text in texts]
    for number, page in enumerate(pages):
        (tmp_path / str(number)).write_text(page)
    told = scrapy("compare", tmp_path / "0", tmp_path / "1").stdout
    found = dedup.explain(pages[0], pages[1], html=True, min_resemblance=0.1)
    assert f"verdict      different: {found.rule}" in found.lines
    for line in found.lines:
        if line.startswith(("simhash", "distance", "containment", "only in")):
            assert line in told


def test_what_cant_be_compared_is_told() -> None:
    found = dedup.explain("Not found", "Not found")
    assert (found.duplicate, found.rule) == (False, "a page is too short to be judged")
    with pytest.raises(TypeError, match="text is 7; allowed: str"):
        dedup.explain("a", 7)  # type: ignore[arg-type]


def test_a_notebook_shows_what_is_said() -> None:
    """As a table, in which a page's words are no markup."""
    found = dedup.explain("x < y " * 40, "x &lt; y " * 40)
    html = found._repr_html_()
    rows = re.findall(r"<tr><th>([^<>]*)</th><td><code>([^<>]*)</code></td></tr>", html)
    assert [f"{unescape(name)}{unescape(text)}" for name, text in rows] == list(found.lines)
    with dedup.open() as pages:
        assert "<th>status</th><td><code>unjudged</code>" in pages.add("a", text="short")._repr_html_()
        prints = [pages.fingerprint(text="word " * 40)] * 2
        assert "<th>distance</th><td><code>0</code>" in pages.detector.compare(*prints)._repr_html_()
