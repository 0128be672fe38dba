"""All that is known of what HTML shows, for the walk in Python and for the compiled one.

What is read of a page is the text of all elements but those of `CODE` and `IGNORED`, and the attributes in `ATTRIBUTES`.
"""

#: Elements, and ARIA roles, that mark the chrome of a site: what is around a page, and on many pages alike.
CHROME = frozenset({"nav", "aside", "form", "menu"})
CHROME_ROLES = frozenset({"navigation", "banner", "contentinfo", "search", "complementary", "form", "menu"})
#: Elements that are chrome unless they are the header or footer of what a page is about.
MARGINS = frozenset({"header", "footer"})
CONTENT = frozenset({"main", "article", "section"})
#: Elements that say what a page is called; of the second, the first in the page.
TITLE, HEADING = "title", "h1"

#: Elements whose text is data, not words.
CODE = frozenset({"script", "style"})
#: An element that is not read.  No page has it: the names that a parser finds are in lower case.
IGNORED = "IGNORED"
#: Attributes that count, each with its mark: "w" for words that are shown or read out; "i" for the URL of what is shown, and
#: "t" for several URLs, the first of which counts; "h" for that of a link; "v" for a value, "c" for a content (of a meta
#: element that has a name, that of a description), "o" for the data of an object, "y" for a style, of which an image is
#: read; "l" for a title (titles of links are data, since they mostly repeat the links); "d" for other data, such as every
#: ``data-*``; "u" for what is no words, such as the line of a chart; "e" for what is not read, and only makes pages unequal,
#: as values other than those of inputs do.
ATTRIBUTES = {
    **dict.fromkeys(["alt", "alttext", "aria-label", "label", "placeholder", "srcdoc", "summary"], "w"),
    **dict.fromkeys(["src", "poster", "data-src", "data-original", "data-lazy", "data-lazy-src"], "i"),
    **dict.fromkeys(["srcset", "data-srcset", "data-lazy-srcset"], "t"),
    "href": "h",
    "value": "v",
    "content": "c",
    "data": "o",
    "style": "y",
    "title": "l",
    **dict.fromkeys(["onclick", "datetime"], "d"),
    **dict.fromkeys(["points", "d"], "u"),
    **dict.fromkeys(["aria-valuenow", "checked", "selected", "coords", "height", "width", "transform"], "e"),
    **dict.fromkeys(["bgcolor", "color", "fill"], "e"),
}

#: Inputs whose values nobody sees.
UNSEEN = frozenset({"hidden", "checkbox", "radio", "password", "image"})

#: Elements that are parts of a line, and no blocks.
INLINE = frozenset(
    [
        *("a", "abbr", "acronym", "area", "audio", "b", "bdi", "bdo", "big", "button", "canvas", "cite"),
        *("code", "data", "del", "dfn", "em", "font", "i", "iframe", "img", "input", "ins", "kbd"),
        *("label", "map", "mark", "math", "meter", "noscript", "object", "option", "output", "picture"),
        *("progress", "q", "rp", "rt", "ruby", "s", "samp", "select", "small", "source", "span"),
        *("strike", "strong", "sub", "sup", "svg", "template", "textarea", "time", "track", "tt", "u"),
        *("var", "video", "wbr"),
    ]
)


def is_chrome_role(role: str) -> bool:
    """Returns whether an element of this role is chrome."""
    return role.strip().lower() in CHROME_ROLES


def datum_name(tag: str, kind: str, name: str) -> str | None:
    """Returns the name of a value that nobody sees, of an element, its type and its name; None if it is shown.

    >>> datum_name("input", "Hidden", "id"), datum_name("input", "submit", "go")
    ('@id', None)
    """
    return "@" + name if tag == "input" and kind.strip().lower() in UNSEEN else None
