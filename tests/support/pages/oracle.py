"""What the tokens of a page should be, by other means: a second implementation, on BeautifulSoup and urljoin."""

import re
import unicodedata
from itertools import pairwise
from urllib.parse import quote, urljoin, urlsplit, urlunsplit

from bs4 import BeautifulSoup, Tag
from bs4.element import PreformattedString
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

SIGNS = "!#$%&()*+<=>?@[\\]^{|}~"
SESSION = re.compile(r"(phpsessid|zenid|gclid|fbclid|utm_\w+)=", re.IGNORECASE)
SPACELESS = re.compile(
    "CJK UNIFIED|IDEOGRAPHIC ITERATION|HIRAGANA LETTER|KATAKANA LETTER|KATAKANA-HIRAGANA PROLONGED|THAI CHARACTER"
)


def fold(text: str) -> str:
    """Folds a text as words are compared, with the functions of the standard library."""
    visible = re.sub("[\u00ad\u200b\u200c\u200d\u2060\ufeff]", "", text)
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", visible).casefold())


def words_of(text: str, signs: str = "") -> list[str]:
    """Splits a text into words, letter by letter; some signs are words, too."""
    words: list[str] = []
    run: list[str] = []  # the letters of a script without spaces
    joins: bool | None = (
        None  # whether the last word takes letters (True), marks only (False), nothing (None)
    )
    for part in re.split(f"([{re.escape(signs)}]+)", text) if signs else [text]:
        if part and part[0] in signs:
            words.append(part)
            continue
        joins = None
        for char in [*fold(part), " "]:
            if unicodedata.category(char).startswith("M"):
                if joins is not None:
                    (words if joins else run)[-1] += char
                continue
            if char.isalnum() and SPACELESS.match(unicodedata.name(char)):
                run.append(char)
                joins = False
                continue
            words += [a + b for a, b in pairwise(run)] or run
            run = []
            if not char.isalnum() and char != "_":
                joins = None
            elif joins:
                words[-1] += char
            else:
                words.append(char)
                joins = True
    return words


def url_tokens(value: str, base: str) -> list[str]:
    """Makes the token of an HREF or SRC on a page at ``base``; returns no token if it is not kept."""
    value = value.strip()
    target, own = urlsplit(urljoin(base, value)), urlsplit(base)
    if not value or value.startswith("#") or len(value) > 2000 or target.scheme not in ("http", "https"):
        return []
    path = target.path.partition(";jsessionid=")[0]
    query = "&".join(part for part in target.query.split("&") if not SESSION.match(part))
    host = target.netloc.lower()
    if host == own.netloc.lower():
        host, folders, own_folders = "", path.split("/"), own.path.split("/")
        while len(folders) > 2 and len(own_folders) > 2 and folders[1] == own_folders[1]:
            del folders[1], own_folders[1]
        path = "/".join(folders)
    url = (f"//{host}" if host else "") + (path or "/") + (f"?{query}" if query else "")
    return [fold(quote(url.replace(" ", "%20"), safe="".join(map(chr, range(33, 127)))))]


def tokens_of(page: str, url: str) -> list[str]:
    """Collects the tokens of a page on a plain walk over the tree of another parser."""
    found: list[str] = []
    for node in BeautifulSoup(page, "html.parser").descendants:
        around = {parent.name for parent in [node, *node.parents]}
        if around & {"script", "style"}:
            continue
        signs = SIGNS if around & {"title"} else ""
        if isinstance(node, Tag):
            for name, value in node.attrs.items():
                if name == {"a": "href", "area": "href"}.get(node.name, "src"):
                    found += url_tokens(value, url)
                elif name in {"alt", "title"}:
                    found += words_of(value, signs)
        elif not isinstance(node, PreformattedString):  # comments and the like
            found += words_of(node, signs)
    return named_alike(found, url)


def named_alike(tokens: list[str], url: str) -> list[str]:
    """Gives one name to the links to a page's own path on other hosts, and to itself."""
    own = urlsplit(url_tokens(url, "http://nowhere.example.com/")[0])
    links = {token: urlsplit(token) for token in tokens if token.startswith("//")}
    hosts = {link.netloc for link in links.values() if (link.path, link.query) == (own.path, own.query)}
    alike = {token for token, link in links.items() if link.netloc in hosts and link[2:] == own[2:]}
    if not alike:
        return tokens
    name = f"//{','.join(sorted({own.netloc, *hosts}))}{urlunsplit(('', '', *own[2:]))}"
    return [name if token in alike | {*url_tokens(url, url)} else token for token in tokens]


# --- Drawn at random ---------------------------------------------------------------------------------


def steady(times: int = 1) -> settings:
    """Settings with which every run has the same examples, so many times as many as other tests."""
    slow = [HealthCheck.too_slow]
    return settings(
        max_examples=times * settings().max_examples,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=slow,
    )


def spaced(text: str) -> st.SearchStrategy[str]:
    """One of the words of a text."""
    return st.sampled_from(text.split(" "))


PATHS = st.lists(spaced("docs a B v1 x.html page.html é 100%25 .. ."), max_size=4).map("/".join)
PARAMETERS = spaced("id=7 Q=Up sid=17 utm_source=x PHPSESSID=1 aside=2 x=/docs/ v2")
QUERIES = st.lists(PARAMETERS, min_size=1, max_size=3, unique=True).map("&".join)
LINKS = st.one_of(
    st.tuples(
        st.sampled_from(["", "/", "http://example.org/", "https://Example.ORG/", "//example.org/docs/"])
        | st.sampled_from(["http://other.org/", "http://www.example.org/docs/", "https://example.org:8080/"]),
        PATHS,
        st.just("") | st.just(";jsessionid=1F") | QUERIES.map("?{}".format),
        st.sampled_from(["", "", "#top"]),
    ).map("".join),
    st.sampled_from(
        ["#x", "mailto:a@b.c", "javascript:void(0)", "data:,x", "", " b.html ", "a b.html", "/" * 2001]
    ),
)
