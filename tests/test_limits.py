"""Which texts are not read: too large, or hostile to the parser; and that nothing innocent is."""

import random

import pytest
from parsel import Selector

from dedup.page import html, limits
from dedup.page.limits import MAX_ATTRIBUTES, MAX_CHARACTERS, MAX_TAGS, MAX_TOKENS, unreadable
from tests.support.pages.tagsoup import SOUP, SURE, numbered


@pytest.mark.parametrize("size", [20_000, 200_000, 2_000_000])
def test_attributes_of_a_tag(size: int) -> None:
    def page(attributes: int) -> str:
        tag = SURE + "<p" + numbered(" a#", attributes) + ">"
        return tag + " " * (size - len(tag))

    allowed = MAX_ATTRIBUTES // size
    if len(page(allowed + 1)) == size:  # as many fit into it
        assert unreadable(page(allowed)) is None
        assert unreadable(page(allowed + 1)) == "hostile"
    assert unreadable(page(min(allowed, size // 10))) is None


def test_a_page_may_have_so_many_characters_tags_and_tokens() -> None:
    assert unreadable("x" * MAX_CHARACTERS) is None
    assert unreadable("x" * (MAX_CHARACTERS + 1)) == "large"
    assert unreadable("<b>" * MAX_TAGS) is None
    assert unreadable("<b>" * (MAX_TAGS + 1)) == "large"
    assert not html.extract(html.parse("<p>" + "é " * MAX_TOKENS)).reason
    assert html.extract(html.parse("<p>" + "é " * (MAX_TOKENS + 1))).reason == "truncated"


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(
            f"<img src='data:image/png;base64,{'iVBORw0KGgo/' * 90_000}'>", id="an image in the page"
        ),
        pytest.param(f"<path d='{'M 10 20 L 30 40 ' * 70_000}'>", id="a drawing"),
        pytest.param("<p>" + 'It\'s a plain text, of "words" only. ' * 90_000, id="a text"),
        pytest.param("<script>" + "if (a<b) { c = d + 'e' } " * 70_000, id="a script"),
        pytest.param('<a x="a > b" y="() => c">x</a>\n' * 35_000, id="arrows in attributes"),
        pytest.param("<p>" + numbered("<i class='a#' id=b# title='c > d'>e</i>", 30_000), id="small tags"),
    ],
)
def test_an_innocent_page_is_not_hostile(page: str) -> None:
    assert len(page) > 1_000_000
    assert unreadable(page) is None


@pytest.mark.parametrize("most", [2, 3, 5])
def test_no_tag_of_too_many_attributes_is_overlooked(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    chance, hostile = random.Random(most), 0
    for _ in range(2_000):
        pieces = [*chance.sample(SOUP, 8), "<p ", ' a="', '">']
        page = "".join(chance.choices(pieces, k=chance.randrange(5, 80))).strip()
        monkeypatch.setattr(limits, "MAX_ATTRIBUTES", most * len(page))
        tags = [node for node in Selector(page).root.iter() if isinstance(node.tag, str)]
        found = max((len(tag.attrib) for tag in tags), default=0) > most
        assert found <= (unreadable(page) == "hostile"), page
        hostile += found
    assert hostile > 50
