"""What an index is built with: stored in it, compared at every start, and never mixed with anything else."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from dedup.errors import IndexCorruptError, IndexMismatchError
from dedup.fingerprint.detector import Detector
from dedup.fingerprint.plans import Plan, block_plan, possible_plans
from dedup.index.entry import Entry
from dedup.settings import SETTINGS

#: Changes whenever pages that are stored or exported would be read differently.
FORMAT = 5

_RUN = re.compile("[0-9a-f]{32}")


@dataclass(frozen=True)
class Parameters:
    """What an index is built with."""

    detector: Detector
    scope: str
    plan: Plan
    format: int = FORMAT  #: of the store: it changes whenever that would be read differently

    @property
    def texts(self) -> dict[str, str]:
        """All of them, as an index stores them."""
        own = {"format": str(self.format), "scope": self.scope, "tables": str(self.plan)}
        return own | self.detector.parameters

    def adopt(self, where: str, stored: Mapping[str, str], *, any_plan: bool) -> "Parameters":
        """Returns these parameters with the table plan of an existing index, if everything else is alike.

        ``any_plan``: the plan may differ from the one here.  Raises `IndexMismatchError` that names the first
        field that differs, and both values.
        """
        wanted = self.texts
        check_format(where, stored.get("format"), self.format)
        if any_plan and stored.get("tables"):
            wanted["tables"] = stored["tables"]
        check_parameters(f"the index {where}", stored, wanted)
        for plan in self._plans():
            if str(plan) == wanted["tables"]:
                return replace(self, plan=plan)
        raise IndexCorruptError(f"the index {where} is damaged: its table plan is {wanted['tables']!r}")

    def _plans(self) -> Iterator[Plan]:
        """Yields the plans that an index may have; its own one first, as all the others take some milliseconds."""
        k = self.plan.max_distance
        yield from (self.plan, block_plan(k))
        yield from possible_plans(k)

    def describe(self, expected_pages: int) -> str:
        """Returns how pages are found in the index, in one line."""
        return self.detector.finder.describe(self.plan, expected_pages, self.detector.min_resemblance)

    def flaw(self, entry: Entry) -> str | None:
        """Returns why no claim can be compared with a page; None if every claim can."""
        octets = self.detector.sketcher.size
        bands = self.detector.finder.own_keys
        if len(entry.sketch) != octets:
            return f"its sketch has {len(entry.sketch)} bytes instead of {octets}"
        if len(entry.bands) != bands:
            return f"it has {len(entry.bands)} bands instead of {bands}"
        if not 0 <= entry.filed < 1 << 32:
            return f"it was filed at {entry.filed}"
        if not _RUN.fullmatch(entry.run):
            return "it names no run"
        return None


def check_format(where: str, stored: object, wanted: int = FORMAT, what: str = "format") -> None:
    """Raises `IndexMismatchError` if what is stored there is of another format, or ``what`` else a store has of the kind."""
    _check_age(
        f"the index {where}", what, str(stored), wanted,
        "start anew with another index; pages get there by 'scrapy index export FILE' with that version and 'scrapy index "
        "import FILE' with this one, which refuses them if the two read pages differently",
    )  # fmt: skip


def _check_age(where: str, what: str, stored: str, wanted: int, remedy: str) -> None:
    if stored.isdigit() and int(stored) != wanted:
        age = "a newer" if int(stored) > wanted else "an older"
        raise IndexMismatchError(
            f"{where} was built by {age} version of this program: its {what} is {stored}, and this one's is {wanted}; "
            f"go on with that version, or {remedy}",
            settings=("index", "namespace"),
        )


def check_parameters(what: str, stored: Mapping[str, str], wanted: Mapping[str, str]) -> None:
    """Raises `IndexMismatchError`, naming the first parameter that is not as wanted."""
    for name, value in wanted.items():
        if stored.get(name) != value:
            if name == "scheme":
                remedy = "start anew with another index: what the two have read of a page differs"
                _check_age(what, "scheme of fingerprints", stored.get(name, ""), int(value), remedy)
            there = repr(stored[name]) if name in stored else "not stored"
            raise IndexMismatchError(
                f"{what} was built with other parameters: {name} is {there} there "
                f"and {value!r} here; use the same settings, or another index",
                settings=(*([name] if name in SETTINGS else []), "index", "namespace"),
            )
