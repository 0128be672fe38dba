"""Every setting, once: its name, its default, the values that are allowed, and what it does.

Settings are grouped by the part of the program that carries them.  Whoever needs one takes its group, so a new setting
reaches all of them by a line here.  What is said of settings elsewhere comes from here, too: errors, the DEDUP_ settings
of a project, the keywords of `dedup.open`, crawler/settings.py and docs/reference.md (``make settings`` writes them).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from dedup.values import Choice, Flag, Group, LogPath, Number, Setting, Text, Texts, setting

#: What may be done with a near-duplicate; the setting of that name says what each means.
Action = Literal["drop", "nofollow", "mark"]

#: Which responses are judged; the setting of that name says what each means.
Types = Literal["html", "text", "all"]
#: Which links of near-duplicates are followed; the setting of that name says what each means.
Follow = Literal["never", "yield", "all"]

#: Settings that belong together, by one word: what each sets that is not set otherwise.
PROFILES: Mapping[str, Mapping[str, object]] = {
    "careful": {"audit": 0.05, "follow": "yield", "on_index_failure": "pause"},
    "balanced": {},
    "thrifty": {"probe": False},
}

_MANY = 10**12  # more than there will ever be


# fmt: off
@dataclass(frozen=True)
class CrawlSettings(Group):
    """A Scrapy project: where things are, and which responses and requests the filter sees."""

    enabled: bool = setting(True, Flag(), "The filter can be turned off as a whole.")
    profile: str = setting("balanced", Choice(tuple(PROFILES)),
        'How much is asked of the site: "careful" looks behind near-duplicates, checks one drop in twenty again, '
        'and waits for an index that is away; "thrifty" asks for no page twice. What is set beside it counts more.')
    index: str | None = setting(None,
        Text("'memory:', 'file:PATH', 'redis://HOST:PORT/DB', 'rediss://...', 'unix:///SOCKET', "
             "'redis+cluster://HOST:PORT,...', 'rediss+cluster://...'"),
        "Kept pages are filed here; by default in a file of the spider, .scrapy/dedup/PROJECT/SPIDER.sqlite.")
    namespace: str | None = setting(None, Text("printable text without braces"),
        "Pages are compared with those of the same namespace; by default it is PROJECT/SPIDER, so that each "
        "spider has an index of its own.")
    shard: str | None = setting(None,
        Text("'I/N' (shard I of N, from 1/N to N/N; N up to 100) or 'auto/N' (any that is free)"),
        "Of a crawl by N workers, this one crawls the hosts of its shard, and hands links to others over through the "
        "index's Redis. By default it crawls all.")
    heir: str | None = setting(None, Choice(("all", "rest")),
        'What a worker crawls that takes the shard of one that has died, or was stopped: all of it anew ("all"), or '
        'only what was not done ("rest"). By default the second where items are seen to be written at once: feeds of '
        'lines in files, no pipeline, no JOBDIR.')
    types: Types = setting("html", Choice(get_args(Types)),
        'Only HTML is judged ("html"), plain text and JSON as well ("text"), or every response ("all"), such '
        "as PDFs and images, which are duplicates only if they are equal.")
    conditional: bool = setting(True, Flag(),
        "If true, an incremental crawl asks for a page only if it has changed, as the server says (ETag, "
        "Last-Modified). If not, all pages are downloaded.")
    no_vary_search: bool = setting(True, Flag(),
        "If true, a URL is not downloaded if it differs from that of a kept page only in parameters that do not matter, by the "
        "site's header No-Vary-Search.")
    ignore_carried: tuple[str, ...] = setting((), Texts("a tuple of keys of cb_kwargs and meta"),
        "Requests may carry different values under these keys, and their pages are compared all the same.")
    keep_start: bool = setting(True, Flag(),
        "If true, a URL with which the crawl begins is kept whatever it shows; if not, it is judged like any "
        "other, as lists of URLs may want it.")
    log: str = setting("duplicates.jsonl", LogPath(),
        "Near-duplicates are logged in this file, in JSON Lines; %(name)s stands for the spider, "
        "%(time)s for the start of the crawl.")
    show_all: bool = setting(False, Flag(),
        "If true, Scrapy's log has a line for each near-duplicate; else it has one for the first ten, and "
        "then counts.")
    keep_text: bool = setting(False, Flag(),
        "If true, the words of pages are stored beside the index, for `scrapy changes`, and for a report that shows what "
        "differs between two pages.")


@dataclass(frozen=True)
class FilterSettings(Group):
    """What becomes of near-duplicates, and of the crawl if something fails (`dedup.filter`)."""

    action: Action = setting("drop", Choice(get_args(Action)),
        'A near-duplicate is dropped ("drop": neither parsed nor followed), parsed without following '
        'its links ("nofollow"), or only logged ("mark").')
    min_depth: int = setting(0, Number(0, _MANY),
        "Near-duplicates that are fewer links than this from the start are only logged, and never dropped.")
    incremental: bool | str = setting(False, Flag((True, False, "words")),
        "If true, only what is new or has changed since earlier crawls is handed over. The items of an unchanged page are "
        'left out, and its links are followed. With "words" every word of a page counts, else its own content.')
    on_index_failure: str = setting("keep", Choice(("keep", "pause", "stop")),
        'While the index is out of reach, pages are kept unjudged ("keep"), the crawl waits ("pause"), '
        'or it ends ("stop").')
    max_cluster: int = setting(5, Number(0, _MANY),
        "If the near-duplicates of one page have more different names (last parts of their paths) on one host than "
        "this, the page is taken for a login wall: a warning is logged, and pages that look like it are kept. 0 turns "
        "this off.")
    probe: bool = setting(True, Flag(),
        "If true, pages are fetched again to tell whether two differ in content, or only in noise, such as a counter. And a "
        "host is asked for two addresses that can't exist, to tell soft 404s. If not, such pages are kept.")
    audit: float = setting(0.0, Number(0.0, 1.0),
        "This share of the drops is checked again by all shingles of both pages. Of the URLs that only dropped pages "
        "link to, this share is fetched at the end and judged: one more download each.")


@dataclass(frozen=True)
class DetectorSettings(Group):
    """What a fingerprint is made of, and when two are alike (`dedup.Detector`)."""

    max_distance: int = setting(6, Number(0, 7),  # at 8, chance alone begins to find matches
        "Simhashes of near-duplicates differ in at most this many of their 64 bits (k); a higher value "
        "finds more candidates.")
    min_resemblance: float = setting(0.75, Number(0.0, 1.0),
        "Near-duplicates have at least this share of their shingles in common; a higher value drops "
        "less, and 0 also drops pages that only share a template.")
    shingle_size: int = setting(6, Number(1, 100), "A shingle is this many successive tokens.")
    min_tokens: int = setting(30, Number(0, 1_000_000), "Pages of fewer words are never judged, and are always kept.")
    keep_urls: bool = setting(True, Flag(), "If true, the URLs of links and images count as part of a page.")
    ignore: tuple[str, ...] = setting((),
        Texts("a tuple of CSS selectors, of tags, #ids, .classes, [attributes] and :not(), joined by spaces, > and commas"),
        "Elements that these CSS selectors find don't count, nor does what is in them.")
    ignore_text: tuple[str, ...] = setting((), Texts("a tuple of regular expressions"),
        "Text that these regular expressions find doesn't count.")
    hash_key: str = setting("", Text("any text, or '' for none", secret=True),
        "With this secret, nobody else can make a page that looks like a duplicate of another.")
    method: str = setting("simhash", Choice(("simhash", "minhash", "supershingle")),
        'Candidates are found by their simhashes ("simhash"), by bands of min-hashes ("minhash") or by '
        'supershingles ("supershingle").')
    recall: float = setting(0.99, Number(0.5, 0.9999),
        'With method "minhash", the bands are planned to find this share of the pages of the least '
        "resemblance.")
    supershingle_size: int = setting(14, Number(1, 64),
        'With method "supershingle", each of the six supershingles is made of this many min-hashes.')
    megashingle_size: int = setting(2, Number(1, 6),
        'With method "supershingle", this many of the six supershingles must be equal.')


@dataclass(frozen=True)
class IndexSettings(Group):
    """Which pages are compared, and by what rule (`dedup.open_index`)."""

    scope: str = setting("all", Choice(("all", "host", "site")),
        'All pages are compared with each other ("all"), or only those of one host ("host") or of one '
        'registered domain ("site").')
    chrome: bool = setting(True, Flag(),
        "If true, what many pages of a host share, such as menus, proves nothing: what is a page's own has to match.")
    min_containment: float = setting(0.85, Number(0.0, 1.0),
        "Each of two near-duplicates contains at least this share of the other's unique content. A higher value drops less, "
        "and below .8 other pages are dropped.")
    expected_pages: int = setting(1_000_000, Number(1, _MANY),
        "An index in Redis is planned for this many pages; a wrong guess costs speed or memory, never a verdict.")
    lease: float = setting(60.0, Number(1.0, 60.0),
        "A crawler on Redis that is silent for this many seconds is taken for dead. A lower value notices sooner that "
        "one was killed, but may also take one for dead that only hangs.")
    tables: int | None = setting(None, Number(1, _MANY),
        "The simhashes are held in this many permuted tables; by default in four.")


@dataclass(frozen=True)
class LinkSettings(Group):
    """Which links are downloaded (`dedup.links`)."""

    follow: Follow = setting("never", Choice(get_args(Follow)),
        'What becomes of the links of near-duplicates that are dropped or not followed: left out ("never"), followed '
        'as far as pages like them turn out to be new ("yield"), or all followed ("all").')
    parked: str = setting("parked.jsonl", LogPath(),
        "Links that are not downloaded are logged in this file, in JSON Lines, each with the reason.")
# fmt: on


#: In the order in which they are listed.
GROUPS: tuple[type[Group], ...] = (
    CrawlSettings,
    FilterSettings,
    DetectorSettings,
    IndexSettings,
    LinkSettings,
)
#: By name.
SETTINGS: Mapping[str, Setting] = {name: each for group in GROUPS for name, each in group.settings().items()}
