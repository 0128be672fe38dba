"""Finds rules for people: parameters and groups of pages that never brought anything new, with their counts."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from dedup.intervals import wilson
from dedup.links.address import ID
from dedup.links.policy import Links
from dedup.links.rates import Count

#: A rule is learnt from this many pages or more.
LEAST = 20


class Rule(NamedTuple):
    """What is known of a parameter, or of a group of pages."""

    kind: str  #: "parameter" or "group"
    where: str  #: the host, or the group; a star stands for what looks like an id
    name: str  #: the parameter; "" of a group
    judged: int  #: pages that were judged; of a parameter, those that had been met with another value
    new: int  #: how many of them were new
    twins: int  #: of a parameter: how many were near-duplicates of a page that differs in it alone
    high: float  #: the upper end of the 95 % interval of the share of new ones


def learnt(links: Links) -> list[Rule]:
    """Returns rules: where no page was new, or where surely fewer than the least yield were.  Those of most pages come first.

    A group is left out if it is a part of one that is a rule as well.
    """
    groups: dict[str, Count] = {}
    rules = []
    for name, count in links.yields.rates.items():
        kind, _, rest = name.partition(" ")
        if kind == "parameter":
            parameter, _, where = rest.partition(" ")
            if "/" not in where:
                rules.append(_rule("parameter", where, parameter, count))
        elif kind.isdigit():
            of_group = groups.setdefault(rest, Count())
            of_group.all_judged += count.all_judged
            of_group.all_new += count.all_new
    rules += [_rule("group", where, "", count) for where, count in groups.items()]
    rules = [
        rule
        for rule in rules
        if rule.judged >= LEAST and (not rule.new or rule.high < links.settings.min_yield)
    ]
    named = {rule.where for rule in rules if rule.kind == "group"}
    kept = [
        rule
        for rule in rules
        if rule.kind == "parameter" or not any(up in named for up in _above(rule.where))
    ]
    return sorted(kept, key=lambda rule: (-rule.judged, rule.where, rule.name))


def _rule(kind: str, where: str, name: str, count: Count) -> Rule:
    high = wilson(count.all_new, count.all_judged)[1]
    return Rule(kind, where, name, count.all_judged, count.all_new, count.twins, high)


def _above(group: str) -> Iterator[str]:
    """Yields the groups that a group is a part of."""
    host, slash, path = group.partition("/")
    if slash:
        yield host
    at = path.find("/")
    while 0 <= at < len(path) - 1:
        yield f"{host}/{path[: at + 1]}"
        at = path.find("/", at + 1)
    if "?" in group and not group.endswith("?"):
        yield group[: group.index("?") + 1]


def url_discarder(rules: list[Rule]) -> list[dict[str, Any]]:
    """Returns parameters as rules for duplicate-url-discarder, which takes URLs that differ in these alone for one.

    They are those without which a page is the same: no page was new, and nine in ten were near-duplicates of one with
    another value.  That is more than a rule says: what is always met elsewhere, under other URLs, need not be the same.

    >>> url_discarder([Rule("parameter", "a.org", "sid", 40, 0, 39, 0.09), Rule("parameter", "a.org", "p", 30, 0, 3, 0.1)])
    [{'args': ['sid'], 'order': 100, 'processor': 'queryRemoval', 'urlPattern': {'include': ['a.org/']}}]
    """
    hosts: dict[str, list[str]] = {}
    for rule in rules:
        if rule.kind == "parameter" and rule.name != ID and not rule.new and rule.twins >= 0.9 * rule.judged:
            hosts.setdefault(rule.where, []).append(rule.name)
    return [
        {
            "args": sorted(names),
            "order": 100,
            "processor": "queryRemoval",
            "urlPattern": {"include": [f"{host}/"]},  # without the slash, it would be all subdomains as well
        }
        for host, names in sorted(hosts.items())
    ]
