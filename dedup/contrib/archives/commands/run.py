"""The work of `scrapy dedup`: a cleaning by the settings of a project, and what is said of it."""

import argparse
import logging
import os
import sys
from importlib import import_module

from scrapy.settings import Settings

from dedup.contrib.archives import Cleaning, Result
from dedup.contrib.archives.cleaning import Engine
from dedup.errors import SettingsError
from dedup.index import STORES
from dedup.printing import inert, many
from dedup.scrapy.commands.index.access import page_id, spider_meant
from dedup.scrapy.commands.terminal import complain, working
from dedup.scrapy.log.summary import summary
from dedup.scrapy.settings import read_settings

#: The exit status if something was damaged, and left out.
DAMAGED = 7
#: The kinds of damage that are reported, and of other records that hold no page.
DAMAGE = {
    "cut_off": "cut off",
    "head": "without a type or a length that is a number",
    "large": "too long",
    "length": "shorter or longer than stated",
    "no_json": "no JSON object",
    "no_record": "no WARC record",
    "packed": "damaged, and can't be unpacked",
    "unreadable": "not readable",
}
OTHERS = {
    "large": "longer than 16 MB",
    "name": "no file that ends with .html, .htm or .xhtml",
    "no_page": "without html or text",
    "no_url": "without a URL",
    "not_http": "no HTTP response",
}
#: What is not judged, and has no place in a file of another format.
UNWRITTEN = OTHERS | {
    "kind": "requests, revisits and others that hold no page",
    "status": "of another status than 200",
    "type": "of a type that DEDUP_TYPES does not name",
}


def run(inputs: list[str], opts: argparse.Namespace, settings: Settings) -> int:
    """Cleans inputs, and returns the exit status."""
    logging.basicConfig(format="dedup: %(message)s", level=logging.WARNING, stream=sys.stderr)
    scheme, colon, _ = opts.against.partition(":")
    alone = bool(colon) and scheme in STORES
    address = opts.against if alone else opts.index
    settings.set("DEDUP_INDEX", address or "memory:", "cmdline")
    settings.set("DEDUP_INCREMENTAL", False, "cmdline")
    spider = spider_meant(settings, opts.spider) if address else ""
    options = read_settings(settings, spider)
    if address and not options.index.persistent:
        raise SettingsError(
            f"--{'against' if alone else 'index'} is 'memory:', which ends with its crawl; allowed: file:PATH, redis://HOST:PORT/DB"
        )
    cleaning = Cleaning(
        inputs,
        opts.kept,
        opts.duplicates,
        options.detector,
        options.index.settings,
        options.crawl.types,
        options.filter,
        opts.workers,
        (lambda: read_settings(settings, spider).index) if address else None,
        _page_id,
        _spark(opts.master or "local[*]") if opts.engine == "spark" else None,
        opts.keep,
        opts.id,
        opts.text,
        "" if alone else opts.against,
        opts.cdxj,
        alone,
    )
    try:
        result = cleaning.run(working)
    except KeyboardInterrupt:
        if cleaning.targets.folder is None:
            raise
        complain("dedup", f"interrupted; the same command goes on from there ({cleaning.targets.folder})")
        return 130
    return _tell(result, opts)


def _spark(master: str) -> Engine:
    try:  # by its name: dedup.contrib.spark stands on this package
        engine: Engine = import_module("dedup.contrib.spark.cleaning").Spark(master)
    except ImportError as error:
        raise SettingsError(f"--engine is 'spark': {error}") from None
    return engine


def _page_id(url: str) -> str | None:
    try:
        return page_id(url)
    except SettingsError:  # no crawl can meet it, but a row of that name may be in another archive
        return f"row {url}" if url else None


def _tell(result: Result, opts: argparse.Namespace) -> int:
    for table, words, what in ((result.damage, DAMAGE, "left out"), (result.others, OTHERS, "not judged")):
        for why, (count, first) in sorted(table.items()):
            if why in words:
                found = f"{many(count, 'record')} {what}: {words[why]}"
                complain("dedup", f"{found}; the first is in {inert(first)}")
    if result.damage and os.path.exists(f"{opts.kept}.damaged"):
        complain("dedup", f"damaged records are in {inert(opts.kept)}.damaged, unless they can't be unpacked")
    if result.unwritten:
        why = ", ".join(f"{count:,} {UNWRITTEN[each]}" for each, count in sorted(result.unwritten.items()))
        complain("dedup", f"not written, since the format of the output has no place for it: {why}")
    to = sys.stderr if opts.kept == "-" else sys.stdout
    print(summary(result.stats, opts.duplicates, archived=True), file=to)
    if opts.index:
        print(f"  index     {many(result.known, 'page')} known before, {result.filed:,} filed", file=to)
    if opts.kept not in ("", "-"):
        print(f"  written   {opts.kept}", file=to)
    return DAMAGED if result.damage else 0
