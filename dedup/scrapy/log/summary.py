"""The summary of a crawl: what the filter did, in a few lines for people.

It has a logger of its own, so that a program that prints it can silence that.
"""

import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from dedup.printing import many
from dedup.scrapy.log.crowds import recall_among

LOGGER = "dedup.summary"


def summary(stats: Mapping[str, Any], log: str, scrapy: str = "scrapy", *, archived: bool = False) -> str:
    """Returns a block of lines made from a crawl's stats; ``scrapy`` is the command that people call it by here.

    ``log`` is the path of the drop log, "" if there is none.  ``archived``: the pages are those of archives, of which
    nothing is fetched or followed.

    >>> print(summary({"dedup/pages": 12, "dedup/new": 7, "dedup/duplicate": 4, "dedup/dropped": 4,
    ...     "dedup/unjudged": 1, "dedup/unjudged/short": 1, "dedup/links_not_followed": 90}, "drops.jsonl"))
    12 pages fetched and judged
      kept      8: 7 new, 1 could not be judged (1 short)
      dropped   4 near-duplicates
      saved     90 links on near-duplicates were not followed
      drop log  drops.jsonl
      to see    scrapy duplicates drops.jsonl --html report.html
    """
    return "\n".join(_lines(stats, log, scrapy, archived))


def _lines(stats: Mapping[str, Any], log: str, scrapy: str, archived: bool) -> Iterator[str]:
    def count(name: str) -> int:
        return int(stats.get(f"dedup/{name}", 0))

    def parts(name: str, said: str) -> str:
        prefix = f"dedup/{name}/"
        found = sorted((key.removeprefix(prefix), n) for key, n in stats.items() if key.startswith(prefix))
        reasons = ", ".join(f"{n:,} {what.replace('_', ' ')}" for what, n in found)
        return f"{count(name):,} {said}" + (f" ({reasons})" if reasons else "")

    skipped = f", {parts('skipped', 'skipped')}" if count("skipped") else ""
    yield f"{many(count('pages'), 'page')} {'judged' if archived else 'fetched and judged'}{skipped}"
    kept = [
        f"{count('new'):,} new",
        *([f"{count('same'):,} seen before at the same URL"] if count("same") else []),
        *([parts("unjudged", "could not be judged")] if count("unjudged") else []),
        *([f"{count('not_followed'):,} near-duplicates, not followed"] if count("not_followed") else []),
        *([f"{count('marked'):,} marked as near-duplicates"] if count("marked") else []),
    ]
    yield f"  kept      {count('pages') - count('dropped'):,}: {', '.join(kept)}"
    prefix = "dedup/judges/"
    judges = {name.removeprefix(prefix): n for name, n in stats.items() if name.startswith(prefix)}
    if judges.keys() - {"index", "read"}:
        most = sorted(judges.items(), key=lambda each: -each[1])
        yield "  judges    " + ", ".join(f"{name} on {n:,}" for name, n in most).replace(
            " on", " decided on", 1
        )
    if count("unchanged"):
        yield (
            f"  unchanged {count('unchanged'):,} of them {_were(count('unchanged'))} handed over by an earlier crawl: "
            f"{many(count('items_left_out'), 'item')} left out, and links followed"
        )
    if count("not_modified"):
        size = count("not_modified_bytes")
        less = f"{size / 1e6:,.1f} MB" if size >= 1e6 else f"{size / 1e3:,.1f} kB"
        yield f"  not sent  {count('not_modified'):,} of these, as their servers said that they had not changed: {less} less"
    if count("own_content"):
        unknown = count("own_content/host_unknown")
        yield (
            f"  own       {count('own_content'):,} of the new pages {_is(count('own_content'), 'looks', 'look')} like another, "
            f"but {_is(count('own_content'), 'has', 'have')} content of {_is(count('own_content'), 'its', 'their')} own"
            + (f"; {unknown:,} of these on hosts of which little was known" if unknown else "")
        )
    if count("carries"):
        keys = str(stats.get("dedup/carries/keys", ""))
        apart = count("unjudged/carries")
        yield (
            f"  carried   the requests of {many(count('carries'), 'page')} carried data of the spider, "
            f"{count('carries/different'):,} different: {keys}. Two pages are compared only if these data are equal"
            + (f": {apart:,} equal a kept page, and were kept for that reason alone" if apart else "")
            + f". If a key doesn't matter: DEDUP_IGNORE_CARRIED = ({keys.partition(' (')[0]!r},)"
        )
    if count("crowded"):
        pages = count("pages") - count("dropped")
        share, (size, recall) = count("crowded") / max(1, pages), recall_among(pages)
        yield (
            f"  crowded   {count('crowded'):,} of the kept pages ({share:.1%}) {_is(count('crowded'), 'resembles', 'resemble')} more pages than could be compared: some "
            f"of them may be copies; of copies among {size:,} pages that share one large frame, {1 - recall:.1%} were kept"
        )
    yield f"  dropped   {many(count('dropped'), 'near-duplicate')}"
    if variants := count("no_vary_search"):
        yield f"  not asked {many(variants, 'URL')} that differ from others only in parameters which do not matter, as the site says (No-Vary-Search)"
    if elsewhere := count("dropped/elsewhere"):
        yield f"  doubtful  {elsewhere:,} of these {_were(elsewhere)} dropped for pages that another crawl has handed over"
    if count("probes"):
        hosts = many(count("soft_404/hosts"), "host")
        yield (
            f"  probed    {many(count('probes'), 'extra request')} told what is noise, such as counters and adverts (DEDUP_PROBE); "
            f"dropped pages that differ in nothing else: {count('probed'):,}"
            + (f"; soft 404s of {hosts}: {count('soft_404'):,}" if count("soft_404") else "")
        )
    if harvested := count("links/harvested"):
        yield f"  led on    {many(harvested, 'near-duplicate')}; those of their links that promised new content were followed"
    elif count("links_not_followed") and not archived:
        yield f"  saved     {many(count('links_not_followed'), 'link')} on near-duplicates {_were(count('links_not_followed'))} not followed"
    if worst := stats.get("dedup/hosts/worst"):
        led = f"; the links of {count('hosts/led_on'):,} were followed" if count("hosts/led_on") else ""
        yield f"  hosts     {many(count('hosts/dropped'), 'page')} {_were(count('hosts/dropped'))} dropped for pages of other hosts: {worst}{led}"
    if count("links/parked"):
        yield (
            f"  parked    {many(count('links/waiting'), 'link')}, since pages like them brought too little new content; "
            f"{count('links/came_back'):,} others were parked and then followed"
        )
    if count("unreached"):
        yield f"  missed?   {many(count('unreached'), 'URL')} {_were(count('unreached'))} found only on dropped pages{_missed(stats)}"
    if count("marked"):
        yield (
            f"  marked    {many(count('marked'), 'near-duplicate')}; if they were dropped, "
            f"{many(count('links_marked'), 'link')} on them would not be followed"
        )
    if named := count("canonical"):
        words = {"agrees": "that of the kept page", "own": "their own", "other": "that of a third page"}
        told = ", ".join(f"on {count(f'canonical/{how}'):,} {what}" for how, what in words.items())
        yield f"  site      {named:,} of the near-duplicates {_is(named, 'names', 'name')} a canonical URL: {told}"
    if count("late/filed") or count("late/duplicate") or count("late/never"):
        yield (
            f"  outage    of the pages kept while the index was away, {count('late/filed'):,} were filed later, "
            f"{count('late/duplicate'):,} were near-duplicates, {count('late/never'):,} are in no index"
        )
    if count("fetched_again"):
        unsaid = (
            f"; {count('uncertain'):,} since it was not known what became of that page"
            if count("uncertain")
            else ""
        )
        fetched = "judged" if archived else "fetched"
        yield (
            f"  again     {many(count('fetched_again'), 'dropped page')} {_were(count('fetched_again'))} {fetched} again, since the kept page "
            f"failed, was an error page, or turned out to differ{unsaid}"
        )
    if count("asked_again"):
        yield f"  asked     {many(count('asked_again'), 'time')} a callback asked for its page again, since the answer was not the page that it wanted"
    if count("alarms"):
        yield f"  ALARM     {many(count('alarms'), 'page')} absorbed too many others: see the warnings"
    if off := stats.get("dedup/audit/off"):
        yield f"  AUDIT     a rule was wrong, and is off: {off}; what it has dropped there was fetched again"
    if trap := stats.get("dedup/trap"):
        parked = count("parked")
        yield f"  TRAP?     {trap}" + (
            f"; {many(parked, 'link')} {_were(parked)} not followed" if parked else ""
        )
    if since := stats.get("dedup/changes/since"):
        from dedup.filter.change import WORDS  # few crawls keep a history

        told = ", ".join(f"{count(f'changes/{word}'):,} {word}" for word in WORDS)
        unseen = f", {count('changes/not_seen'):,} not seen" if count("changes/not_seen") else ""
        why = (
            ""
            if stats.get("dedup/changes/whole")
            else "; it did not see the whole site, so pages that it has not met are not called hidden or gone"
        )
        yield f"  changes   {told}{unseen} since the crawl of {since}{why}: {scrapy} changes --html changes.html"
    yield f"  drop log  {log if log and count('duplicate') else 'none'}"
    if log and count("duplicate"):
        yield f"  to see    {scrapy} duplicates {shlex.quote(log)} --html report.html"


def _is(count: int, one: str, more: str) -> str:
    return one if count == 1 else more


def _were(count: int) -> str:
    return _is(count, "was", "were")


def _missed(stats: Mapping[str, Any]) -> str:
    """Returns what is known of the contents behind addresses that were never asked for."""
    get = "dedup/unreached/{}".format
    if not (sampled := stats.get(get("sampled"))):
        return ", and not fetched; DEDUP_AUDIT = 0.1 fetches a tenth of such URLs, to see what they hold"
    low, most, high = (stats[get(name)] for name in ("contents_low", "contents", "contents_high"))
    new = stats[get("new")]
    return f"; {new:,} of {sampled:,} sampled {_is(new, 'is', 'are')} new, so about {most:,} of all ({low:,} to {high:,})"
