"""The work of `scrapy links`: reads what a crawl has left, and prints it."""

import json

from scrapy.settings import Settings

from dedup.errors import IndexUnavailableError
from dedup.links import Link, Links
from dedup.links.rules import learnt, url_discarder
from dedup.links.state import read_state
from dedup.printing import inert
from dedup.scrapy.commands.index.access import spider_meant
from dedup.scrapy.commands.terminal import print_table
from dedup.scrapy.places import state_of
from dedup.scrapy.settings import namespace_of, read_group
from dedup.settings import LinkSettings


def read_links(settings: Settings, spider: str) -> Links:
    """Returns what the last crawl of a spider has learnt.  Raises `IndexUnavailableError` if there was none."""
    spider = spider_meant(settings, spider)
    links = Links(**vars(read_group(settings, LinkSettings)))
    path = state_of(namespace_of(settings, spider))
    if not read_state(path, links):
        raise IndexUnavailableError(
            f"nothing at {path}: no crawl with DEDUP_FOLLOW, DEDUP_SKIP or DEDUP_PRIORITY has ended yet"
        )
    return links


def print_rules(links: Links, *, as_json: bool, as_discarder: bool) -> None:
    """Prints the rules, for people or for programs."""
    rules = learnt(links)
    if as_discarder:
        print(json.dumps(url_discarder(rules), indent=2, sort_keys=True))
    elif as_json:
        print(json.dumps([rule._asdict() for rule in rules], indent=2))
    elif not rules:
        print("No rules: of every group of 20 pages or more, some were new")
    else:
        names = [f"{rule.where} {rule.name}=" if rule.name else rule.where for rule in rules]
        rows = [
            (rule.judged, rule.new, f"{rule.high:.1%}", inert(name))
            for rule, name in zip(rules, names, strict=True)
        ]
        print_table(["judged", "new", "at most", "host and parameter, or group of pages"], rows, gap=False)


def print_explanation(links: Links, url: str, *, as_json: bool) -> None:
    """Prints what is expected of a link on a near-duplicate, and what that is made of."""
    rate, doubt = links.rate(url), links.doubt(Link(url, found_on=url))
    evidence = links.yields.evidence(url)
    if as_json:
        groups = [
            {"group": group, "tail": tail, "judged": round(count.judged, 2), "new": round(count.new, 2)}
            for group, tail, count in evidence
        ]
        found = {"url": url, "rate": round(rate, 4), "least": links.settings.min_yield}
        print(json.dumps(found | {"parked": doubt is not None, "groups": groups}, indent=2))
        return
    what = "would be parked" if doubt else "would be downloaded"
    print(
        f"{inert(url)}\n{what}: {rate:.1%} of the downloads like it are expected to be new; "
        f"{links.settings.min_yield:.1%} is enough"
    )
    rows = [
        (f"{count.judged:,.0f}", f"{count.new:,.1f}", tail, inert(group)) for group, tail, count in evidence
    ]
    print_table(["judged", "new", "tail", "group"], rows)
