"""The promise, in real crawls with the default settings: pages of other contents are kept, whatever is around them."""

import pytest

from tests.support.crawls import Answer, Run, html, words

MENU, FOOTER = words("menu", 400), words("footer", 200)


def shop(mark: bool, own: int = 25) -> dict[str, Answer]:
    """A shop: products of 25 words each, or of another number, in 600 words of menu and footer that are marked as such, or not."""
    before, after = ("<nav>", "</nav>") if mark else ("<div>", "</div>")

    def page(title: str, text: str) -> Answer:
        return html(
            f"<title>{title}</title>{before}{MENU}{after}<h1>{title}</h1><p>{text}</p>{before}{FOOTER}{after}"
        )

    # Numbers don't count in a heading.
    names = [
        f"{a}{b} lamp"
        for a in ["bra", "cor", "dre", "fil", "gom", "hax", "jil", "kus", "lov", "mep"]
        for b in "aeiouywrst"
    ]
    assert len(names) == 100
    links = "".join(f'<a href="/p/{number}">{name}</a>' for number, name in enumerate(names))
    products = {f"/p/{number}": page(name, words(number, own)) for number, name in enumerate(names)}
    return {"/": page("The shop", links)} | products


def kept(done: object) -> int:
    return sum(path.startswith("/p/") for path in done.spider.judgements)  # type: ignore[attr-defined]


@pytest.mark.parametrize("mark", [True, False], ids=["marked", "unmarked"])
def test_products_in_large_menus_are_kept(crawl: Run, mark: bool) -> None:
    done = crawl(shop(mark), DEDUP_CHROME=True)
    assert kept(done) >= 98
    assert "trap" not in done.figures


def test_without_the_rule_few_of_them_are(crawl: Run) -> None:
    """And that products fall for one page looks like a wall; without that alarm, hardly any is left."""
    assert kept(crawl(shop(mark=True), DEDUP_CHROME=False, DEDUP_MAX_CLUSTER=0)) <= 20


def test_true_copies_are_dropped_once_the_host_is_known(crawl: Run) -> None:
    """Every content is kept at least once; of the copies, those that come before eight pages are kept are, too."""
    copies = {
        path.replace("/p/", "/mirror/"): (status, headers, body.replace(b"</h1>", b"</h1>Visitor 1"))
        for path, (status, headers, body) in shop(mark=True, own=80).items()
        if path.startswith("/p/")
    }
    pages = shop(mark=True, own=80)
    status, headers, body = pages["/"]
    more = "".join(f'<a href="{path}">copy</a>' for path in copies).encode()
    done = crawl(pages | copies | {"/": (status, headers, body + more)}, DEDUP_CHROME=True)
    assert kept(done) >= 98
    assert sum(path.startswith("/mirror/") for path in done.dropped) >= 75
