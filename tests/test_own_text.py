"""What a page says itself, as text: without the chrome of its host."""

import asyncio
import copy
from typing import Any

from dedup import Detector, open_index, own_text
from dedup.scrapy import own_text as own_text_of
from tests.support.changing import Shop
from tests.support.crawls import Run, Walker, words


def framed(n: int) -> str:
    """A page in a frame that no markup tells from the content."""
    body = f"<h1>Lamp {n}</h1><p>{words(f'lamp {n}', 40)}, made of <b>brass</b>.</p><table><tr><td>Price<td>{n}0</table>"
    return f"<div>{words('menu', 90)}</div>{body}<div><p>{words('foot', 90)}</p></div>"


def test_the_chrome_of_a_host_is_known_after_eight_pages() -> None:
    async def read() -> list[str]:
        async with open_index("memory:", Detector()) as index:
            found = []
            for n in range(9):
                url = f"http://a.org/{n}"
                found.append(own_text(framed(n), url, index))
                await index.claim(url, url, index.detector.fingerprint(framed(n), url))
            return found

    *_, before, last = asyncio.run(read())
    assert words("menu", 90) in before
    assert last == f"# Lamp 8\n\n{words('lamp 8', 40)}, made of brass.\n\nPrice 80"


def test_no_page_makes_it_raise() -> None:
    for page in (
        "",
        "<",
        "<title>",
        b"\xff\xfe\x00",
        "<p>" * 9_000,
        "<script>x</script>",
        "<!--",
        "<p>a<!-- b -->c<?d e?>f",
    ):
        assert isinstance(own_text(page), str)
    assert own_text("<p>a<!-- b -->c<script>d</script>e") == "ace"


def test_lines_begin_as_on_the_screen() -> None:
    for tag in ("summary", "legend", "details", "div", "dd"):
        assert (
            own_text(f"<div>A lamp.<{tag}>Of brass.</{tag}>For boats.</div>")
            == "A lamp.\nOf brass.\nFor boats."
        )


def test_a_callback_can_have_it(crawl: Run) -> None:
    class Reader(Walker):
        def note(self, response: Any) -> Any:
            super().note(response)
            found = response.meta["dedup"]
            assert found.judgement.verdict.kept
            assert found.change is None, "no history is kept"
            assert copy.deepcopy(found) is None, "it is of this response"
            return {"path": self.path(response), "text": own_text_of(response), "same": found.own_text}

        def parse(self, response: Any) -> Any:
            yield self.note(response)
            yield from response.follow_all(css="a", meta=response.meta)

    shop = Shop(products=20)
    done = crawl(shop, Reader, DEDUP_CHROME=True)
    assert all(item["text"] == item["same"] for item in done.items)
    assert not done.figures.get("carries"), "it is no data of the spider"
    items = {item["path"]: item["text"] for item in done.items}
    last = shop.goods[-1]
    assert items[last.path].startswith(f"# {last.name}\n\n{last.text}\n\nPrice {last.price} crowns")
    assert words("sidebar", 80) not in items[last.path]
