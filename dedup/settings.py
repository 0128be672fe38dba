"""Every setting, once: its name, the values that are allowed, its default, and what it does.

What else is said of settings comes from here, or a test compares it with this: how they are read and checked,
what errors say, the keywords of `Detector` and `open_index`, crawler/settings.py, docs/reference.md.  To add one:
a line here, its use, and its paragraphs in those two files.
"""

from collections.abc import Mapping
from typing import Literal, get_args

from dedup.values import Choice, Flag, Number, Setting, Text, Texts

__all__ = ["SETTINGS", "Action", "Follow", "Types"]

#: What may be done with a near-duplicate; the setting of that name says what each means.
Action = Literal["drop", "nofollow", "mark"]

#: Which responses are judged; the setting of that name says what each means.
Types = Literal["html", "text", "all"]
#: Which links of near-duplicates are followed; the setting of that name says what each means.
Follow = Literal["never", "yield", "all"]

_MANY = 10**12  # more than there will ever be

# fmt: off
_SETTINGS = (
    Setting("enabled", Flag(), True, "The filter can be turned off as a whole."),
    Setting("action", Choice(get_args(Action)), "drop",
            'A near-duplicate is dropped ("drop": neither parsed nor followed), parsed without following '
            'its links ("nofollow"), or only logged ("mark").'),
    Setting("min_depth", Number(0, _MANY), 0,
            "Near-duplicates that are fewer links than this from the start are only logged, and never dropped."),
    Setting("index", Text("'memory:', 'file:PATH', 'redis://HOST:PORT/DB', 'rediss://...', 'unix:///SOCKET', "
                          "'redis+cluster://HOST:PORT,...', 'rediss+cluster://...'"), None,
            "Kept pages are filed here; by default in a file of the spider, .scrapy/dedup/PROJECT/SPIDER.sqlite."),
    Setting("namespace", Text("printable text without braces"), None,
            "Pages are compared with those of the same namespace; by default it is PROJECT/SPIDER, so that each "
            "spider has an index of its own."),
    Setting("shard", Text("'I/N' (shard I of N, from 1/N to N/N; N up to 100) or 'auto/N' (any that is free)"), None,
            "Of the hosts of a crawl by N workers, this one crawls those of its shard, and hands links to others over to "
            "their workers, through the index's Redis; by default it crawls all."),
    Setting("incremental", Flag(), False,
            "If true, only what is new or has changed since earlier crawls is handed over: of a page that is as it "
            "was, the items are left out, and the links are followed all the same."),
    Setting("max_distance", Number(0, 7), 6,  # at 8, chance alone begins to find matches
            "Simhashes of near-duplicates differ in at most this many of their 64 bits (k); a higher value "
            "finds more candidates."),
    Setting("min_resemblance", Number(0.0, 1.0), 0.75,
            "Near-duplicates have at least this share of their shingles in common; a higher value drops "
            "less, and 0 also drops pages that only share a template."),
    Setting("chrome", Flag(), True,
            "If true, what many pages of a host share, such as menus and footers, proves nothing: what is a "
            "page's own has to match, too."),
    Setting("min_own", Number(0.0, 1.0), 0.5,
            "Near-duplicates have at least this share of a page's own shingles in common, those that are "
            "not the chrome of its host; a higher value drops less."),
    Setting("shingle_size", Number(1, 100), 6, "A shingle is this many successive tokens."),
    Setting("min_tokens", Number(0, 1_000_000), 30,
            "Pages of fewer words are never judged, and are always kept."),
    Setting("keep_urls", Flag(), True, "If true, the URLs of links and images count as part of a page."),
    Setting("ignore", Texts("a tuple of CSS selectors, of tags, #ids, .classes, [attributes] and :not(), joined by spaces, "
                            "> and commas"), (),
            "Elements that these CSS selectors find don't count, nor does what is in them."),
    Setting("ignore_text", Texts("a tuple of regular expressions"), (),
            "Text that these regular expressions find doesn't count."),
    Setting("types", Choice(get_args(Types)), "html",
            'Only HTML is judged ("html"), plain text and JSON as well ("text"), or every response ("all"), such '
            "as PDFs and images, which are duplicates only if they are equal."),
    Setting("scope", Choice(("all", "host", "site")), "all",
            'All pages are compared with each other ("all"), or only those of one host ("host") or of one '
            'registered domain ("site").'),
    Setting("expected_pages", Number(1, _MANY), 1_000_000,
            "An index in Redis is planned for this many pages; a wrong guess costs speed or memory, never a verdict."),
    Setting("tables", Number(1, _MANY), None,
            "The simhashes are held in this many permuted tables; by default in four, or, in a Redis Cluster, in as many as "
            "its pages need."),
    Setting("method", Choice(("simhash", "minhash", "supershingle")), "simhash",
            'Candidates are found by their simhashes ("simhash"), by bands of min-hashes ("minhash") or by '
            'supershingles ("supershingle").'),
    Setting("recall", Number(0.5, 0.9999), 0.99,
            'With method "minhash", the bands are planned to find this share of the pages of the least '
            "resemblance."),
    Setting("supershingle_size", Number(1, 64), 14,
            'With method "supershingle", each of the six supershingles is made of this many min-hashes.'),
    Setting("megashingle_size", Number(1, 6), 2,
            'With method "supershingle", this many of the six supershingles must be equal.'),
    Setting("log", Text("a path, in which %(name)s and %(time)s are filled in, or '' for none"),
            "duplicates.jsonl",
            "Near-duplicates are logged in this file, in JSON Lines; %(name)s stands for the spider, "
            "%(time)s for the start of the crawl."),
    Setting("show_all", Flag(), False,
            "If true, Scrapy's log has a line for each near-duplicate; else it has one for the first ten, and "
            "then counts."),
    Setting("on_index_failure", Choice(("keep", "pause", "stop")), "keep",
            'While the index is out of reach, pages are kept unjudged ("keep"), the crawl waits ("pause"), '
            'or it ends ("stop").'),
    Setting("max_cluster", Number(0, _MANY), 5,
            "A page may absorb near-duplicates of this many different names, the last parts of their paths, of a host; "
            "one that absorbs more looks like a login wall: there is a warning, and what looks like it is kept. 0 "
            "allows any number."),
    Setting("keep_start", Flag(), True,
            "If true, a URL with which the crawl begins is kept whatever it shows; if not, it is judged like any "
            "other, as lists of URLs may want it."),
    Setting("follow", Choice(get_args(Follow)), "never",
            'The links of near-duplicates that are dropped or not followed are left out ("never"), followed as far as '
            'pages like them turn out to be new ("yield"), or all followed ("all").'),
    Setting("min_yield", Number(0.0, 1.0), 0.05,
            "Links that are weighed are downloaded while at least this share of the downloads like them brings new "
            "content; a lower value loses less and downloads more."),
    Setting("skip", Flag(), False,
            "If true, links of kept pages are weighed, too, if a page with another value of a parameter, or of the same "
            "name in another folder, was met before."),
    Setting("explore", Number(0.0, 1.0), 0.1,
            "Of the links that are parked, samples are downloaded all the same: at most fifty of each host, and this "
            "share of its new contents; 0 takes none."),
    Setting("priority", Flag(), False,
            "If true, links are downloaded in the order of the new content that they are expected to bring."),
    Setting("parked", Text("a path, in which %(name)s and %(time)s are filled in, or '' for none"),
            "parked.jsonl",
            "Links that are not downloaded are logged in this file, in JSON Lines, each with the reason."),
    Setting("audit", Number(0.0, 1.0), 0.0,
            "This share of the drops is checked again by exact resemblance, and of the URLs that only dropped pages link "
            "to, this share is fetched at the end and judged: one more download each."),
    Setting("keep_text", Flag(), False,
            "If true, the words of pages are stored beside the log, so that a report shows what differs "
            "between two."),
    Setting("hash_key", Text("any text, or '' for none", secret=True), "",
            "With this secret, nobody else can make a page that looks like a duplicate of another."),
)
# fmt: on
#: By name, in the order in which they are listed.
SETTINGS: Mapping[str, Setting] = {setting.name: setting for setting in _SETTINGS}
