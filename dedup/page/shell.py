"""Pages that show only the shell of an application, which scripts fill."""

from collections.abc import Callable
from itertools import islice
from typing import cast

from lxml import etree

from dedup.page.words import is_url, split_tokens

__all__ = ["DROPPED", "is_shell"]

#: Elements whose content is not visible text.
DROPPED = frozenset({"script", "style", "noscript", "template"})
#: Elements into which scripts draw a page, by their ids; one that shows more words than this is not empty.
MOUNTS = (
    *("root", "app", "__next", "__nuxt", "___gatsby", "__app", "_app", "react-root", "react-app", "app-root"),
    *("q-app", "vue-app", "svelte", "sapper", "main-app", "ember-app", "application", "appRoot", "mount"),
)
LOADING = 5
#: A page of fewer words outside marked chrome shows only the shell that scripts fill, if there is an empty mount;
#: and if there is none, but the page asks for JavaScript.
SHELL_WITH_MOUNT, SHELL = 100, 30

_MOUNTS = cast(
    Callable[[etree._Element], list[etree._Element]],
    etree.XPath(
        f"(//app-root | //*[@id][{' or '.join(f'@id={name!r}' for name in MOUNTS)}])[position() <= 4]"
    ),
)


def is_shell(tokens: list[str], chrome: tuple[tuple[int, int], ...], root: etree._Element) -> bool:
    """Whether a page with scripts shows little but what is around the place that they fill.

    ``chrome`` are the runs of its tokens, from ... to before ..., that are marked as chrome.
    """
    words = _main_words(tokens, chrome, SHELL_WITH_MOUNT)
    if words >= SHELL_WITH_MOUNT:
        return False
    if any(_shows_nothing(node) for node in _MOUNTS(root)):
        return True
    notices = islice(root.iter("noscript"), 4)
    return words < SHELL and any(
        "javascript" in "".join(islice(node.itertext(), 20)).lower() for node in notices
    )


def _main_words(tokens: list[str], chrome: tuple[tuple[int, int], ...], most: int) -> int:
    """How many words of a page are outside marked chrome; counting ends soon after ``most``."""
    words = start = 0
    for end, following in (*chrome, (len(tokens), 0)):
        while start < end and words < most:
            words += list(map(is_url, tokens[start : min(start + most, end)])).count(False)
            start += most
        start = following
    return words


def _shows_nothing(node: etree._Element) -> bool:
    """Whether an element has hardly a word, such as one that says that the page is loading."""
    words = 0
    for one in node.iter():
        texts = (
            one.text if one.tag not in DROPPED and isinstance(one.tag, str) else None,
            one.tail if one is not node else None,
        )
        words += sum(len(split_tokens(text[:1000])) for text in texts if text and not text.isspace())
        if words > LOADING or one.tag == "a":
            return False
    return True
