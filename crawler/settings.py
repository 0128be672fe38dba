"""Settings of the project.  Every value can be changed on the command line: ``-s NAME=VALUE``."""

import os

BOT_NAME = "shingleback"
SPIDER_MODULES = ["crawler.spiders"]
ADDONS = {"dedup.scrapy.Addon": 500}

# --- Manners -------------------------------------------------------------------------------------
USER_AGENT = "shingleback (+https://example.org/bot)"  # put your own address here
ROBOTSTXT_OBEY = True
CONCURRENT_REQUESTS_PER_DOMAIN = 1
DOWNLOAD_DELAY = 1  # seconds between two requests to a host
DOWNLOAD_TIMEOUT = 60  # seconds
DOWNLOAD_MAXSIZE = 16 * 1024 * 1024  # bytes; Scrapy's default is 1 GiB
DOWNLOAD_WARNSIZE = 4 * 1024 * 1024
# A link must not make the crawler read a file of this machine, or speak anything but HTTP.
DOWNLOAD_HANDLERS = {"data": None, "file": None, "ftp": None, "s3": None}
DEPTH_LIMIT = 0  # links from the start; 0 = any
CLOSESPIDER_PAGECOUNT = 0  # stop after so many kept pages; 0 = never

# --- Housekeeping --------------------------------------------------------------------------------
LOG_LEVEL = "INFO"
FEED_EXPORT_ENCODING = "utf-8"
TELNETCONSOLE_ENABLED = False
REMOTE_CONTROL_ENABLED = False
TWISTED_REACTOR = "twisted.internet.asyncioreactor.AsyncioSelectorReactor"

# --- The near-duplicate filter; the values shown are the defaults ----------------------------------
DEDUP_ENABLED = True
# What becomes of a near-duplicate.  "drop": neither parsed nor followed.  "nofollow": parsed, but its
# links are not followed.  "mark": nothing changes but the log (to try thresholds without risk).
DEDUP_ACTION = "drop"
# Where kept pages are filed: "file:PATH" (default: .scrapy/dedup/NAMESPACE.sqlite), "memory:" (forgotten
# at the end), "redis://HOST:PORT/DB", "rediss://...", "unix:///SOCKET" (shared by several crawlers).
DEDUP_INDEX = os.environ.get("DEDUP_INDEX")
# Which index, of several in one Redis; default: BOT_NAME.
DEDUP_NAMESPACE = None
# k: simhashes of near-duplicates differ in at most so many of 64 bits, 0 to 7.  Higher finds more
# candidates and needs more tables; the second stage still has to agree.
DEDUP_MAX_DISTANCE = 6
# Share of six-token shingles that near-duplicates have in common, 0 to 1.  Higher drops less; 0 turns
# this second stage off, and pages that only share a template are dropped.
DEDUP_MIN_RESEMBLANCE = 0.75
# Tokens per shingle of the second stage.
DEDUP_SHINGLE_SIZE = 6
# Pages of fewer words are never judged, and always kept.
DEDUP_MIN_TOKENS = 30
# Whether the URLs of links and images count as part of a page.
DEDUP_KEEP_URLS = True
# Which pages are compared: "all", those of one "host", or of one "site" (registered domain).
DEDUP_SCOPE = "all"
# How many pages the index is planned for.  A wrong guess costs speed or memory, never a verdict.
DEDUP_EXPECTED_PAGES = 1_000_000
# Number of permuted tables; None = planned from the two values above it.  With k = 3: 4, 10, 16, 20 ...
DEDUP_TABLES = None
# How candidates are found: "simhash", "minhash" (LSH bands) or "supershingle".
DEDUP_METHOD = "simhash"
# Of "minhash": the share of pages of MIN_RESEMBLANCE that the bands are planned to find.
DEDUP_RECALL = 0.99
# Of "supershingle": min-hashes in each of six, and how many of the six must be equal (Bing: 5 and 4).
DEDUP_SUPERSHINGLE_SIZE = 14
DEDUP_MEGASHINGLE_SIZE = 2
# The log of dropped pages, JSON Lines; %(name)s (spider) and %(time)s are filled in.
DEDUP_LOG = "duplicates.jsonl"
# When the index can't be reached: "keep" pages unjudged, "pause" until it is back, "stop" the crawl.
DEDUP_ON_INDEX_FAILURE = "keep"
# Near-duplicates of one page that a host may have.  More of them look like a login wall or an error page:
# a warning, and from then on they are kept.  0 = any number.
DEDUP_MAX_CLUSTER = 1_000
# Share of the drops, 0 to 1, that are checked again by exact resemblance: one more download each, and the
# rate of wrong drops in the stats (dedup/audit/).
DEDUP_AUDIT = 0.0
# Whether the words of pages are stored beside the log (up to 100 MB, compressed), so that
# "scrapy duplicates --html" shows what differs.
DEDUP_KEEP_TEXT = False
# A secret: with it, nobody can make a page that looks like a duplicate of another.
DEDUP_HASH_KEY = os.environ.get("DEDUP_HASH_KEY", "")
