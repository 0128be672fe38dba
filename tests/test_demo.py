"""The demo site: its truth holds by the detector, with a margin, and a crawl of it ends."""

import http.client
import random
import re
from collections import Counter, defaultdict, deque
from collections.abc import Callable
from itertools import combinations, count
from urllib.parse import urljoin, urlsplit
from urllib.request import urlopen

import pytest

from crawler.demo import Site, serve
from dedup import Detector
from dedup.fingerprint.fingerprint import Fingerprint
from tests.support.waiting import LIMIT

HOST = "http://127.0.0.1:8000"
VISITS = (1, 5000)
DETECTOR = Detector()
MISSING = "/articles/the-lost-chapter"
PRIVATE = "/private/accounts"
CARDS = {f"/staff/{name}" for name in ("anna", "bertil", "clara", "david", "edda")}


@pytest.fixture(scope="module")
def site() -> Site:
    return Site()


def html(site: Site, path: str, visit: int = 1) -> str:
    status, content_type, body = site.render(path, visit)
    assert (status, content_type) == (200, "text/html; charset=utf-8"), path
    return body.decode()


def links(page: str, path: str) -> list[str]:
    """Addresses, without host, that a page's HREFs name."""
    urls = [urlsplit(urljoin(HOST + path, href)) for href in re.findall(r'<a href="([^"]*)"', page)]
    assert {url.netloc for url in urls} <= {urlsplit(HOST).netloc}
    return [url.path + (f"?{url.query}" if url.query else "") for url in urls]


def fingerprint(site: Site, path: str, visit: int) -> Fingerprint:
    return DETECTOR.fingerprint(site.render(path, visit)[2], HOST + path)


def month(number: int) -> str:
    return f"/calendar/{2026 + number // 12}/{number % 12 + 1:02}"


def groups(site: Site) -> dict[str, list[str]]:
    paths = defaultdict(list)
    for path, content in site.truth.items():
        paths[content].append(path)
    return paths


def test_truth_names_every_page(site: Site) -> None:
    assert set(site.truth) == set(site.pages)
    for path in site.truth:
        html(site, path)
    sizes = Counter(len(paths) for paths in groups(site).values())
    # The calendar; the article with session ids; 13 articles thrice; sections and list 1 twice; the others.
    assert sizes == {240: 1, 3 + 2 * 10: 1, 3: 13, 2: 3 + 1, 1: 8 + 4 + 5 + 5}
    assert len(site.truth) - 240 - 20 + 1 == 73  # addresses, with the calendar counted once, sessions never
    assert all(groups(site)["calendar"][n] == month(n) for n in range(240))


def test_an_answer_follows_from_the_seed_and_the_visit(site: Site) -> None:
    for path in ["/", "/articles/oil-and-wick", "/list?page=3", "/calendar/2031/07"]:
        answer = html(site, path, 9)
        assert html(Site(7), path, 9) == answer
        assert answer not in {html(site, path, 10), html(Site(8), path, 9)}
    parts = [
        re.findall(r"<(main|aside|footer)>(.*?)</", html(site, "/", visit), re.DOTALL) for visit in VISITS
    ]
    assert [name for (name, a), (_, b) in zip(*parts, strict=True) if a != b] == ["aside", "footer"]
    sids = {
        link.partition("?sid=")[2]
        for visit in range(150)
        for link in links(html(site, "/shop/", visit), "/shop/")
    }
    assert sids - {""} == {path.partition("?sid=")[2] for path in site.truth if "?sid=" in path}


def test_same_content_is_near_and_other_content_is_far(site: Site) -> None:
    """All pages, every third one at two visits, and every thirtieth month of the calendar."""
    paths = [path for path in site.truth if "calendar" not in path] + [month(n) for n in range(0, 240, 30)]
    shown = [(path, visit + 3 * n) for n, path in enumerate(paths) for visit in VISITS[n % 3 > 0 :]]
    pages = [(path, fingerprint(site, path, visit)) for path, visit in shown]
    assert {path for path, fp in pages if fp.reason} == CARDS
    for (path_a, a), (path_b, b) in combinations(pages, 2):
        comparison = DETECTOR.compare(a, b)
        assert comparison.distance is not None
        assert comparison.resemblance is not None
        if {path_a, path_b} & CARDS:  # too short to be judged, even against themselves
            assert not comparison.duplicate, (path_a, path_b)
        elif site.truth[path_a] == site.truth[path_b]:
            assert comparison.duplicate, (path_a, path_b, comparison)
            assert comparison.distance <= 4, (path_a, path_b, comparison)
            assert comparison.resemblance >= 0.8, (path_a, path_b, comparison)
        else:
            assert not comparison.duplicate, (path_a, path_b, comparison)
            assert comparison.resemblance <= 0.2, (path_a, path_b, comparison)


def test_the_verdict_holds_at_any_visit(site: Site) -> None:
    """What has several addresses is recognised whenever each is requested."""
    chance = random.Random(1)
    for content, paths in groups(site).items():
        if len(paths) > 1:
            chosen = [fingerprint(site, chance.choice(paths), chance.randrange(6000)) for _ in range(6)]
            assert all(DETECTOR.compare(a, b).duplicate for a, b in combinations(chosen, 2)), content


def test_every_link_leads_to_a_page(site: Site) -> None:
    linked: Counter[str] = Counter()
    for path in site.truth:
        for visit in VISITS:
            linked.update(set(links(html(site, path, visit), path)))
    assert set(linked) - set(site.truth) == {MISSING}
    assert linked[MISSING] == linked[PRIVATE] == len(VISITS)  # on one page
    # Nothing is out of reach, but for session ids that nobody was given.
    assert {path for path in set(site.truth) - set(linked) if "?sid=" not in path} == set()


def walk(site: Site, new: Callable[[str, int], bool], take: Callable[[deque[str]], str]) -> list[str]:
    """All addresses requested in a crawl that follows the links of the pages which are ``new``."""
    frontier, seen, visits = deque(["/"]), {"/"}, count(1)
    requested = []
    while frontier:
        path, visit = take(frontier), next(visits)
        requested.append(path)
        if path == MISSING or not new(path, visit):
            continue
        found = [link for link in links(html(site, path, visit), path) if link not in seen]
        seen.update(found)
        frontier.extend(dict.fromkeys(found))
    return requested


@pytest.mark.parametrize("take", [deque.popleft, deque.pop], ids=["breadth first", "depth first"])
def test_the_filter_keeps_each_content_once(site: Site, take: Callable[[deque[str]], str]) -> None:
    kept: dict[str, Fingerprint] = {}

    def new(path: str, visit: int) -> bool:
        fp = fingerprint(site, path, visit)
        if any(DETECTOR.compare(fp, other).duplicate for other in kept.values()):
            return False
        kept[path] = fp
        return True

    requested = walk(site, new, take)
    assert sorted(site.truth[path] for path in kept) == sorted(set(site.truth.values()))
    assert len([path for path in requested if path.startswith("/calendar/")]) <= 3
    assert len(requested) < 100


def test_serve_answers_over_http(site: Site) -> None:
    with serve(site) as base:
        connection = http.client.HTTPConnection(urlsplit(base).netloc, timeout=LIMIT)
        for path in ["/", "/robots.txt", MISSING, "/lamp.svg"]:  # on one connection
            connection.request("GET", path)
            response = connection.getresponse()
            status, kind, body = site.render(path, 1)
            assert (response.status, response.headers["Content-Type"]) == (status, kind)
            assert len(response.read()) == int(response.headers["Content-Length"]) == len(body)
            assert not response.will_close
        connection.close()
    with pytest.raises(OSError, match="refused"):
        urlopen(base, timeout=LIMIT)
