"""Settings of the project.  Every value can be changed on the command line: ``-s NAME=VALUE``."""

import os

BOT_NAME = "shingleback"
SPIDER_MODULES = ["crawler.spiders"]
ADDONS = {"dedup.scrapy.Addon": 500}

# --- Manners -------------------------------------------------------------------------------------
USER_AGENT = "shingleback (+https://example.org/bot)"  # put your own address here
ROBOTSTXT_OBEY = True
DOWNLOADER_MIDDLEWARES = {
    "scrapy.downloadermiddlewares.robotstxt.RobotsTxtMiddleware": None,
    "dedup.scrapy.robots.RobotsTxtMiddleware": 100,  # the same, obeyed by the first requests to a host, too
}
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
CONCURRENT_ITEMS = 8  # of one page; Scrapy begins so many tasks for each page, and its default is 100
TELNETCONSOLE_ENABLED = False
REMOTE_CONTROL_ENABLED = False
EXTENSIONS = {"crawler.pulse.Pulse": 0}
TWISTED_REACTOR = "twisted.internet.asyncioreactor.AsyncioSelectorReactor"

# --- The near-duplicate filter; the values shown are the defaults
# The filter can be turned off as a whole.
DEDUP_ENABLED = True
# How much is asked of the site: "careful" looks behind near-duplicates, checks one drop in twenty again, and
# waits for an index that is away; "thrifty" asks for no page twice. What is set beside it counts more.
DEDUP_PROFILE = "balanced"
# Kept pages are filed here; by default in a file of the spider, .scrapy/dedup/PROJECT/SPIDER.sqlite.
# Allowed: 'memory:', 'file:PATH', 'redis://HOST:PORT/DB', 'rediss://...', 'unix:///SOCKET',
# 'redis+cluster://HOST:PORT,...', 'rediss+cluster://...'.
DEDUP_INDEX = None
# Pages are compared with those of the same namespace; by default it is PROJECT/SPIDER, so that each spider
# has an index of its own.  Allowed: printable text without braces.
DEDUP_NAMESPACE = None
# Of a crawl by N workers, this one crawls the hosts of its shard, and hands links to others over through the
# index's Redis. By default it crawls all.  Allowed: 'I/N' (shard I of N, from 1/N to N/N; N up to 100) or
# 'auto/N' (any that is free).
DEDUP_SHARD = None
# What a worker crawls that takes the shard of one that has died, or was stopped: all of it anew ("all"), or
# only what was not done ("rest"). By default the second where items are seen to be written at once: feeds of
# lines in files, no pipeline, no JOBDIR.
DEDUP_HEIR = None
# Only HTML is judged ("html"), plain text and JSON as well ("text"), or every response ("all"), such as PDFs
# and images, which are duplicates only if they are equal.
DEDUP_TYPES = "html"
# If true, an incremental crawl asks for a page only if it has changed, as the server says (ETag,
# Last-Modified). If not, all pages are downloaded.
DEDUP_CONDITIONAL = True
# If true, a URL is not downloaded if it differs from that of a kept page only in parameters that do not
# matter, by the site's header No-Vary-Search.
DEDUP_NO_VARY_SEARCH = True
# Requests may carry different values under these keys, and their pages are compared all the same.  Allowed: a
# tuple of keys of cb_kwargs and meta.
DEDUP_IGNORE_CARRIED = ()
# If true, a URL with which the crawl begins is kept whatever it shows; if not, it is judged like any other,
# as lists of URLs may want it.
DEDUP_KEEP_START = True
# Near-duplicates are logged in this file, in JSON Lines; %(name)s stands for the spider, %(time)s for the
# start of the crawl.  Allowed: a path, in which %(name)s and %(time)s are filled in, or '' for none.
DEDUP_LOG = "duplicates.jsonl"
# If true, Scrapy's log has a line for each near-duplicate; else it has one for the first ten, and then
# counts.
DEDUP_SHOW_ALL = False
# If true, the words of pages are stored beside the index, for `scrapy changes`, and for a report that shows
# what differs between two pages.
DEDUP_KEEP_TEXT = False
# A near-duplicate is dropped ("drop": neither parsed nor followed), parsed without following its links
# ("nofollow"), or only logged ("mark").
DEDUP_ACTION = "drop"
# Near-duplicates that are fewer links than this from the start are only logged, and never dropped.  Allowed:
# a whole number from 0 to 1,000,000,000,000.
DEDUP_MIN_DEPTH = 0
# If true, only what is new or has changed since earlier crawls is handed over. The items of an unchanged page
# are left out, and its links are followed. With "words" every word of a page counts, else its own content.
DEDUP_INCREMENTAL = False
# While the index is out of reach, pages are kept unjudged ("keep"), the crawl waits ("pause"), or it ends
# ("stop").
# DEDUP_ON_INDEX_FAILURE = "keep"
# If the near-duplicates of one page have more different names (last parts of their paths) on one host than
# this, the page is taken for a login wall: a warning is logged, and pages that look like it are kept. 0 turns
# this off.  Allowed: a whole number from 0 to 1,000,000,000,000.
DEDUP_MAX_CLUSTER = 5
# If true, pages are fetched again to tell whether two differ in content, or only in noise, such as a counter.
# And a host is asked for two addresses that can't exist, to tell soft 404s. If not, such pages are kept.
# DEDUP_PROBE = True
# This share of the drops is checked again by all shingles of both pages. Of the URLs that only dropped pages
# link to, this share is fetched at the end and judged: one more download each.  Allowed: a number from 0 to
# 1.
# DEDUP_AUDIT = 0.0
# Simhashes of near-duplicates differ in at most this many of their 64 bits (k); a higher value finds more
# candidates.  Allowed: a whole number from 0 to 7.
DEDUP_MAX_DISTANCE = 6
# Near-duplicates have at least this share of their shingles in common; a higher value drops less, and 0 also
# drops pages that only share a template.  Allowed: a number from 0 to 1.
DEDUP_MIN_RESEMBLANCE = 0.75
# A shingle is this many successive tokens.  Allowed: a whole number from 1 to 100.
DEDUP_SHINGLE_SIZE = 6
# Pages of fewer words are never judged, and are always kept.  Allowed: a whole number from 0 to 1,000,000.
DEDUP_MIN_TOKENS = 30
# If true, the URLs of links and images count as part of a page.
DEDUP_KEEP_URLS = True
# Elements that these CSS selectors find don't count, nor does what is in them.  Allowed: a tuple of CSS
# selectors, of tags, #ids, .classes, [attributes] and :not(), joined by spaces, > and commas.
DEDUP_IGNORE = ()
# Text that these regular expressions find doesn't count.  Allowed: a tuple of regular expressions.
DEDUP_IGNORE_TEXT = ()
# With this secret, nobody else can make a page that looks like a duplicate of another.  Allowed: any text, or
# '' for none.
DEDUP_HASH_KEY = ""
# Candidates are found by their simhashes ("simhash"), by bands of min-hashes ("minhash") or by supershingles
# ("supershingle").
DEDUP_METHOD = "simhash"
# With method "minhash", the bands are planned to find this share of the pages of the least resemblance.
# Allowed: a number from 0.5 to 0.9999.
DEDUP_RECALL = 0.99
# With method "supershingle", each of the six supershingles is made of this many min-hashes.  Allowed: a whole
# number from 1 to 64.
DEDUP_SUPERSHINGLE_SIZE = 14
# With method "supershingle", this many of the six supershingles must be equal.  Allowed: a whole number from
# 1 to 6.
DEDUP_MEGASHINGLE_SIZE = 2
# All pages are compared with each other ("all"), or only those of one host ("host") or of one registered
# domain ("site").
DEDUP_SCOPE = "all"
# If true, what many pages of a host share, such as menus, proves nothing: what is a page's own has to match.
DEDUP_CHROME = True
# Each of two near-duplicates contains at least this share of the other's unique content. A higher value drops
# less, and below .8 other pages are dropped.  Allowed: a number from 0 to 1.
DEDUP_MIN_CONTAINMENT = 0.85
# An index in Redis is planned for this many pages; a wrong guess costs speed or memory, never a verdict.
# Allowed: a whole number from 1 to 1,000,000,000,000.
DEDUP_EXPECTED_PAGES = 1_000_000
# A crawler on Redis that is silent for this many seconds is taken for dead. A lower value notices sooner that
# one was killed, but may also take one for dead that only hangs.  Allowed: a number from 1 to 60.
DEDUP_LEASE = 60.0
# The simhashes are held in this many permuted tables; by default in four.  Allowed: a whole number from 1 to
# 1,000,000,000,000.
DEDUP_TABLES = None
# What becomes of the links of near-duplicates that are dropped or not followed: left out ("never"), followed
# as far as pages like them turn out to be new ("yield"), or all followed ("all").
# DEDUP_FOLLOW = "never"
# Links that are not downloaded are logged in this file, in JSON Lines, each with the reason.  Allowed: a
# path, in which %(name)s and %(time)s are filled in, or '' for none.
DEDUP_PARKED = "parked.jsonl"

# --- From the environment ------------------------------------------------------------------------
DEDUP_INDEX = os.environ.get("DEDUP_INDEX", DEDUP_INDEX)
DEDUP_HASH_KEY = os.environ.get("DEDUP_HASH_KEY", DEDUP_HASH_KEY)
CRAWLER_PULSE = os.environ.get("CRAWLER_PULSE", "")  # a file that is touched every five seconds
METRICS_HOST = os.environ.get("METRICS_HOST", "127.0.0.1")
if METRICS_PORT := os.environ.get("METRICS_PORT", ""):  # where Prometheus is answered: docs/operations.md
    EXTENSIONS["dedup.scrapy.metrics.Metrics"] = 0
