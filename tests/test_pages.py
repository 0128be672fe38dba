"""The library without asyncio: pages one by one, in any thread, in a notebook, and again."""

import asyncio
import gc
import multiprocessing
import random
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import dedup
from dedup import Detector, IndexMismatchError, IndexUnavailableError, SettingsError
from tests.support.stores import PERSISTENT
from tests.support.waiting import wait_until


def story(seed: int, words: int = 200, changed: int = 0) -> str:
    """A text of its own; some of its words changed."""
    rng = random.Random(seed)
    text = [f"w{seed}x{rng.randrange(500)}" for _ in range(words)]
    for place in range(changed):
        text[place * 50 + 25] = f"changed{place}"
    return " ".join(text)


# --- What is added -----------------------------------------------------------------------------------


def test_a_near_duplicate_is_named_by_the_id_of_the_kept_page(address: str, namespace: str) -> None:
    with dedup.open(address, namespace=namespace) as pages:
        assert pages.add("a", text=story(1)).status == "new"
        verdict = pages.add("b", text=story(1, changed=1))
        assert (verdict.status, verdict.of_id, verdict.kept) == ("duplicate", "a", False)
        assert pages.add("c", text=story(2)).kept
        assert pages.add("d", text="Not found").reason == "short"
        assert len(pages) == 2
        assert [name in pages for name in "abcd"] == [True, False, True, False]
        wait_until(lambda: sorted(pages) == ["a", "c"])


def test_a_page_may_be_given_as_html_as_text_or_as_tokens() -> None:
    with dedup.open() as pages:
        assert pages.add("html", html=f"<h1>{story(1)}</h1>".encode("utf-16")).status == "new"
        assert pages.add("text", text=story(1)).of_id == "html"
        assert pages.add("tokens", tokens=iter(story(1).split())).of_id == "html"


def test_pages_of_one_host_have_to_match_in_what_is_their_own() -> None:
    menu, ask = story(0, 400), {"min_tokens": 10}
    for url, kept in (("http://example.org/{}", True), ("", False)):
        with dedup.open("memory:", **ask) as pages:  # type: ignore[arg-type]
            verdicts = [
                pages.add(str(n), html=f"{menu} {story(n, 20)}", url=url.format(n)) for n in range(1, 20)
            ]
        assert all(verdict.kept for verdict in verdicts[1:]) is kept


def test_what_was_added_counts_for_good(store: str, address: str, namespace: str) -> None:
    for status in ("new", "new" if store == "memory" else "same"):
        with dedup.open(address, namespace=namespace) as pages:
            if status == "same":
                assert pages.add("other", text=story(1)).of_id == "a"
            assert pages.add("a", text=story(1)).status == status
            assert pages.add("b", text=story(1, changed=1)).of_id == "a"


def test_a_crawl_finds_every_content_anew_in_an_index_of_pages(tmp_path: Path) -> None:
    address = f"file:{tmp_path / 'pages.sqlite'}"
    with dedup.open(address) as pages:
        pages.add("a", text=story(1))

    async def crawl() -> str:
        async with dedup.open_index(address, Detector()) as index:
            fingerprint = Detector().fingerprint_text(story(1))
            return (await index.claim("b", "http://example.org/b", fingerprint)).status

    assert asyncio.run(crawl()) == "new"


def test_a_page_that_is_forgotten_can_be_added_with_other_content(address: str, namespace: str) -> None:
    with dedup.open(address, namespace=namespace) as pages:
        pages.add("a", text=story(1))
        assert pages.add("a", text=story(2)).status == "same"
        assert pages.forget("a", "b") == 1
        assert pages.add("a", text=story(2)).status == "new"
        assert pages.add("b", text=story(1)).status == "new"


# --- Where it may be used ----------------------------------------------------------------------------


def test_it_works_where_an_event_loop_is_running_as_in_a_notebook(address: str, namespace: str) -> None:
    async def cell() -> list[str]:
        with dedup.open(address, namespace=namespace) as pages:
            return [pages.add(str(seed), text=story(seed % 3)).status for seed in range(6)]

    assert asyncio.run(cell()) == ["new"] * 3 + ["duplicate"] * 3


def test_a_cell_that_opens_a_file_may_be_run_twice(tmp_path: Path) -> None:
    address = f"file:{tmp_path / 'pages.sqlite'}"
    pages = dedup.open(address)
    pages.add("a", text=story(1))
    pages = dedup.open(address)  # the first one is collected now, and never was closed
    gc.collect()
    assert pages.add("a", text=story(1)).status == "same"
    assert pages.add("b", text=story(1)).of_id == "a"
    pages.close()
    with dedup.open(address) as again:
        assert again.add("b", text=story(1)).of_id == "a"


@PERSISTENT
def test_an_index_may_be_open_twice(address: str, namespace: str) -> None:
    with dedup.open(address, namespace=namespace) as other:
        with dedup.open(address, namespace=namespace) as pages:
            pages.add("a", text=story(1))
            assert other.add("b", text=story(1)).of_id == "a"
        assert other.add("b", text=story(1)).of_id == "a"
        assert other.add("c", text=story(2)).status == "new"
        assert other.add("d", text=story(2)).of_id == "c"
    with dedup.open(address, namespace=namespace) as again:
        assert again.add("e", text=story(2)).of_id == "c"


def test_a_failed_open_leaves_no_thread(tmp_path: Path) -> None:
    address = f"file:{tmp_path / 'pages.sqlite'}"
    dedup.open(address).close()
    threads = set(threading.enumerate())
    for wrong, error in ((address, IndexMismatchError), ("unix:///nowhere", IndexUnavailableError)):
        with pytest.raises(error) as raised:
            dedup.open(wrong, min_tokens=7)
        assert "\n" not in str(raised.value)
    assert set(threading.enumerate()) <= threads  # those of earlier tests may end meanwhile


def test_many_threads_may_add_pages(address: str, namespace: str) -> None:
    with dedup.open(address, namespace=namespace) as pages, ThreadPoolExecutor(4) as threads:
        found = threads.map(
            lambda n: pages.add(str(n), text=story(n % 20, changed=n // 20)).status, range(60)
        )
        assert sorted(found) == ["duplicate"] * 40 + ["new"] * 20


def _add_in_child(pages: dedup.Pages, answers: Any) -> None:
    try:
        answers.put(pages.add("b", text=story(2)).status)
    except RuntimeError as error:
        answers.put(str(error))


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # Python 3.12 advises against it, too
def test_a_process_that_was_forked_is_told_to_open_it_itself(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    with dedup.open(f"file:{tmp_path / 'pages.sqlite'}") as pages:
        answers = context.SimpleQueue()
        child = context.Process(target=_add_in_child, args=(pages, answers))
        child.start()
        assert (
            answers.get() == "this index was opened before this process was forked; open it in each process"
        )
        child.join()


def test_a_closed_index_says_so(address: str, namespace: str) -> None:
    pages = dedup.open(address, namespace=namespace)
    pages.close()
    pages.close()
    with pytest.raises(RuntimeError, match=r"^this index is closed$"):
        pages.add("a", text=story(1))


def test_a_star_import_leaves_the_open_of_python_itself() -> None:
    assert "unique" in dedup.__all__
    assert "open" not in dedup.__all__


# --- What is wrong -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({}, "of html, text and tokens, none are given; give one"),
        ({"html": "a", "text": "a"}, "of html, text and tokens, 2 are given; give one"),
        ({"html": 1}, "html is 1; allowed: bytes or str"),
        ({"text": b"a"}, "text is b'a'; allowed: str"),
        ({"tokens": "abc"}, "tokens is 'abc'; allowed: a list of str"),
        ({"text": "a", "url": None}, "url is None; allowed: a str"),
    ],
)
def test_what_is_no_page_is_refused_in_one_line(wrong: dict[str, Any], says: str) -> None:
    with dedup.open() as pages:
        with pytest.raises(TypeError) as error:
            pages.add("a", **wrong)
        assert str(error.value) == says
        with pytest.raises(TypeError, match=r"^page_id is 7; allowed: a str"):
            pages.add(7, text="a")  # type: ignore[arg-type]


@pytest.mark.parametrize("call", [dedup.open, lambda **wrong: dedup.unique([], **wrong)])
def test_a_wrong_setting_is_named_at_once(call: Callable[..., object]) -> None:
    with pytest.raises(TypeError, match=r"^there is no setting max_distanse; did you mean max_distance[?]$"):
        call(max_distanse=3)
    with pytest.raises(TypeError, match=r"^there is no setting threshold; did you mean min_resemblance[?]$"):
        call(threshold=0.8)
    with pytest.raises(SettingsError, match=r"^max_distance is 9; allowed: a whole number from 0 to 7"):
        call(max_distance=9)


# --- unique ------------------------------------------------------------------------------------------


def test_the_name_of_a_column_is_no_function_of_an_item() -> None:
    with pytest.raises(
        TypeError, match=r"^text is 'body'; it has to be a function of an item, such as operator.itemgetter"
    ):
        dedup.unique([], text="body")  # type: ignore[arg-type]


def test_unique_gives_each_item_as_soon_as_it_is_known() -> None:
    seen = []

    def texts() -> Any:
        for seed in (1, 2, 1, 3):
            seen.append(seed)
            yield story(seed)

    kept = dedup.unique(texts())
    assert (next(kept), seen) == (story(1), [1])
    assert (next(kept), seen) == (story(2), [1, 2])
    assert (list(kept), seen) == ([story(3)], [1, 2, 1, 3])
