"""Pages that show only the shell of an application, which scripts fill."""

from collections.abc import Callable
from itertools import islice
from typing import cast

from lxml import etree

from dedup.page.words import split_tokens

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
    # One set of nodes: to unite two takes quadratic time.
    etree.XPath(
        f"(//*[self::app-root or @id[{' or '.join(f'.={name!r}' for name in MOUNTS)}]])[position() <= 4]"
    ),
)


def is_shell(words: int, root: etree._Element) -> bool:
    """Returns whether a page with scripts shows little but what is around the place that they fill.

    ``words`` is how many of its words are outside marked chrome.
    """
    return words < SHELL_WITH_MOUNT and (_has_mount(root) or (words < SHELL and _asks_for_scripts(root)))


def may_be_shell(root: etree._Element) -> bool:
    """Returns whether a page with scripts has a place that they fill, or asks for them, whatever it shows besides.

    >>> [may_be_shell(etree.HTML(f"{page}<script src=x></script>")) for page in ("<p>Shop<div id=root></div>", "<p>Gone")]
    [True, False]
    """
    return next(root.iter("script"), None) is not None and (_has_mount(root) or _asks_for_scripts(root))


def _has_mount(root: etree._Element) -> bool:
    return any(_shows_nothing(node) for node in _MOUNTS(root))


def _asks_for_scripts(root: etree._Element) -> bool:
    notices = islice(root.iter("noscript"), 4)
    return any("javascript" in "".join(islice(node.itertext(), 20)).lower() for node in notices)


def _shows_nothing(node: etree._Element) -> bool:
    """Returns whether an element has hardly a word, such as one that says that the page is loading."""
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
