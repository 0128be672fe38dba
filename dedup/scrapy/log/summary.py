"""The summary of a crawl: what the filter did, in a few lines for people.

It has a logger of its own, so that a program that prints it can silence that.
"""

import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from dedup.printing import many

LOGGER = "dedup.summary"

#: Lines about the pages that were kept, each by the figure without which it is left out.  A name with a star is a clause.
_KEPT = {
    "unchanged": "  unchanged {unchanged} of them {unchanged:was/were} handed over by an earlier crawl: "
    "{items_left_out:item} left out, and links followed",
    "not_modified": "  not sent  {not_modified} of these, as their servers said that they had not changed: {less} less",
    "own_content": "  own       {own_content} of the new pages {own_content:looks/look} like another, but "
    "{own_content:has/have} content of {own_content:its/their} own{*own_content/host_unknown}",
    "probe/unknown": "  unknown   {probe/unknown} of the kept pages may be copies: requests for that were used up, or did not tell",
    "carries": "  carried   the requests of {carries:page} carried data of the spider, {carries/different} different: "
    "{carries/keys}. Two pages are compared only if these data are equal{*unjudged/carries}. If a key doesn't matter: "
    "DEDUP_IGNORE_CARRIED = ({first_key!r},)",
    "crowded": "  crowded   {crowded} of the kept pages ({crowded_share:.1%}) {crowded:resembles/resemble} more pages than "
    "could be compared: some of them may be copies; of copies among pages that share one large frame, 1 to 2% were kept",
}
#: And about the others.
_DROPPED = {
    "no_vary_search": "  not asked {no_vary_search:URL} that differ from others only in parameters which do not matter, as "
    "the site says (No-Vary-Search)",
    "dropped/elsewhere": "  doubtful  {dropped/elsewhere} of these {dropped/elsewhere:was/were} dropped for pages that another "
    "crawl has handed over",
    "probes": "  probed    {probes:extra request} told what is noise, such as counters and adverts (DEDUP_PROBE); dropped pages "
    "that differ in nothing else: {probed}{*soft_404}",
    "links/harvested": "  led on    {links/harvested:near-duplicate}; those of their links that promised new content were "
    "followed",
    "saved": "  saved     {saved:link} on near-duplicates {saved:was/were} not followed",
    "hosts/worst": "  hosts     {hosts/dropped:page} {hosts/dropped:was/were} dropped for pages of other hosts: "
    "{hosts/worst}{*hosts/led_on}",
    "links/parked": "  parked    {links/waiting:link}, since pages like them brought too little new content; {links/came_back} "
    "others were parked and then followed",
    "unreached": "  missed?   {unreached:URL} {unreached:was/were} found only on dropped pages{missed}",
    "marked": "  marked    {marked:near-duplicate}; if they were dropped, {links_marked:link} on them would not be followed",
    "canonical": "  site      {canonical} of the near-duplicates {canonical:names/name} a canonical URL: on {canonical/agrees} "
    "that of the kept page, on {canonical/own} their own, on {canonical/other} that of a third page",
    "late": "  outage    of the pages kept while the index was away, {late/filed} were filed later, {late/duplicate} were "
    "near-duplicates, {late/never} are in no index",
    "fetched_again": "  again     {fetched_again:dropped page} {fetched_again:was/were} {fetched} again, since the kept page "
    "failed, was an error page, or turned out to differ{*uncertain}",
    "asked_again": "  asked     {asked_again:time} a callback asked for its page again, since the answer was not the page that "
    "it wanted",
    "alarms": "  ALARM     {alarms:page} absorbed too many others: see the warnings",
    "audit/off": "  AUDIT     a rule was wrong, and is off: {audit/off}; what it has dropped there was fetched again",
    "trap": "  TRAP?     {trap}{*parked}",
    "changes/since": "  changes   {changed}{*changes/not_seen} since the crawl of {changes/since}{partly}: {scrapy} changes "
    "--html changes.html",
}
#: Clauses of these lines.
_CLAUSES = {
    "own_content/host_unknown": "; {own_content/host_unknown} of these on hosts of which little was known",
    "unjudged/carries": ": {unjudged/carries} equal a kept page, and were kept for that reason alone",
    "soft_404": "; soft 404s of {soft_404/hosts:host}: {soft_404}",
    "hosts/led_on": "; the links of {hosts/led_on} were followed",
    "uncertain": "; {uncertain} since it was not known what became of that page",
    "parked": "; {parked:link} {parked:was/were} not followed",
    "changes/not_seen": ", {changes/not_seen} not seen",
}


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
    return "\n".join(_lines(_Figures(stats, scrapy, archived), log, scrapy))


class _Count(int):
    """A figure: ``{dropped}`` is a number, ``{dropped:page}`` has its noun, and ``{dropped:is/are}`` is a verb for it."""

    def __format__(self, spec: str) -> str:
        one, slash, more = spec.partition("/")
        if slash:
            return one if self == 1 else more
        return many(int(self), spec) if spec else f"{int(self):,}"


class _Figures(dict[str, Any]):
    """The stats of the filter, and what is reckoned from them; others are 0."""

    def __init__(self, stats: Mapping[str, Any], scrapy: str, archived: bool) -> None:
        for name, value in stats.items():
            if name.startswith("dedup/"):
                self[name.removeprefix("dedup/")] = _Count(value) if isinstance(value, int) else value
        kept = self["kept"] = _Count(self["pages"] - self["dropped"])
        size, keys = self["not_modified_bytes"], self.get("carries/keys", "")
        self["less"] = f"{size / 1e6:,.1f} MB" if size >= 1e6 else f"{size / 1e3:,.1f} kB"
        self["first_key"] = keys.partition(" (")[0]
        self["crowded_share"] = self["crowded"] / max(1, kept)
        if not archived and not self["links/harvested"]:
            self["saved"] = self["links_not_followed"]
        self["missed"] = self._missed()
        self["late"] = self["late/filed"] + self["late/duplicate"] + self["late/never"]
        self["read"], self["fetched"] = (
            ("judged", "judged") if archived else ("fetched and judged", "fetched")
        )
        self["scrapy"] = scrapy
        if self["changes/since"]:
            from dedup.filter.change import WORDS  # few crawls keep a history

            self["changed"] = ", ".join(f"{self[f'changes/{word}']} {word}" for word in WORDS)
            unmet = (
                "; it did not see the whole site, so pages that it has not met are not called hidden or gone"
            )
            self["partly"] = "" if self["changes/whole"] else unmet
        for name, text in _CLAUSES.items():
            self[f"*{name}"] = self.say(name, text)

    def __missing__(self, name: str) -> _Count:
        return _Count(0)

    def say(self, name: str, text: str) -> str:
        """Returns a text with the figures in it; "" without that of a name."""
        return text.format_map(self) if self[name] else ""

    def parts(self, name: str) -> dict[str, int]:
        """Returns what a figure is the sum of."""
        prefix = f"{name}/"
        return {each.removeprefix(prefix): self[each] for each in sorted(self) if each.startswith(prefix)}

    def with_parts(self, name: str, said: str) -> str:
        """Returns a figure and its parts; "" if it is 0."""
        parts = ", ".join(f"{count} {what.replace('_', ' ')}" for what, count in self.parts(name).items())
        return self.say(name, f"{{{name}}} {said}" + (f" ({parts})" if parts else ""))

    def _missed(self) -> str:
        if not self["unreached/sampled"]:
            return ", and not fetched; DEDUP_AUDIT = 0.1 fetches a tenth of such URLs, to see what they hold"
        return (
            "; {unreached/new} of {unreached/sampled} sampled {unreached/new:is/are} new, so about {unreached/contents} of all "
            "({unreached/contents_low} to {unreached/contents_high})"
        ).format_map(self)


def _lines(figures: _Figures, log: str, scrapy: str) -> Iterator[str]:
    say = figures.say
    skipped = figures.with_parts("skipped", "skipped")
    yield "{pages:page} {read}".format_map(figures) + (f", {skipped}" if skipped else "")
    kept = (
        f"{figures['new']} new",
        say("same", "{same} seen before at the same URL"),
        figures.with_parts("unjudged", "could not be judged"),
        say("not_followed", "{not_followed} near-duplicates, not followed"),
        say("marked", "{marked} marked as near-duplicates"),
    )
    yield f"  kept      {figures['kept']}: {', '.join(filter(None, kept))}"
    judges = figures.parts("judges")
    if judges.keys() - {"index", "read"}:
        most = sorted(judges.items(), key=lambda each: -each[1])
        told = ", ".join(f"{name} on {count}" for name, count in most)
        yield "  judges    " + told.replace(" on", " decided on", 1)
    yield from filter(None, (say(name, text) for name, text in _KEPT.items()))
    yield f"  dropped   {figures['dropped']:near-duplicate}"
    yield from filter(None, (say(name, text) for name, text in _DROPPED.items()))
    named = log if figures["duplicate"] else ""
    yield f"  drop log  {named or 'none'}"
    if named:
        yield f"  to see    {scrapy} duplicates {shlex.quote(log)} --html report.html"
