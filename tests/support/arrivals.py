"""Settings that arrive: other values for them, and with which values work was done;"""

from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import wraps
from pathlib import Path
from typing import Any

import pytest

from dedup.contrib.archives import Cleaning
from dedup.filter import Filter
from dedup.fingerprint.detector import Detector
from dedup.fingerprint.plans import possible_plans
from dedup.index import Index
from dedup.index.local.index import LocalIndex
from dedup.scrapy.links.middleware import LinksMiddleware
from dedup.scrapy.middleware import NearDuplicateMiddleware
from dedup.settings import SETTINGS, DetectorSettings, FilterSettings, IndexSettings
from dedup.values import Choice, Group, LogPath, Number, Texts

#: What every verdict depends on, wherever it is given.
VERDICT = {**DetectorSettings.settings(), **IndexSettings.settings()}
#: In an archive no page has a depth, and none can be fetched once more: a cleaning hands all others on to the filter.
NOT_OF_ARCHIVES = {"min_depth", "incremental", "on_index_failure", "audit"}
OF_ARCHIVES = ["types", *(name for name in FilterSettings.settings() if name not in NOT_OF_ARCHIVES)]
#: Methods of those that do the work with a setting.
WORK = (
    (Detector, "fingerprint_page"),
    (Index, "claim"),
    (LocalIndex, "survey"),
    (Filter, "judge"),
    (LinksMiddleware, "process_request"),
    (Cleaning, "run"),
    (NearDuplicateMiddleware, "process_response"),
)
Seen = dict[str, set[object]]


def other(name: str, folder: Path = Path()) -> Any:
    """An allowed value that is not the default."""
    kind, default = SETTINGS[name].kind, SETTINGS[name].default
    if name == "tables":
        return possible_plans(SETTINGS["max_distance"].default)[0].size
    if name == "index":
        return f"file:{folder / 'index.sqlite'}"
    if isinstance(kind, Choice):
        return next(value for value in kind.values if value != default)
    if isinstance(kind, Number):
        return kind.low if default != kind.low else kind.low + 1
    if isinstance(kind, Texts):
        return ("\\.changed",)
    return str(folder / f"{name}.jsonl") if isinstance(kind, LogPath) else "changed"


def watch(monkeypatch: pytest.MonkeyPatch) -> Seen:
    """The values with which work is done from now on, by setting."""
    found: Seen = defaultdict(set)

    def note(worker: Any) -> None:
        for carrier in (
            worker,
            *(getattr(worker, name, None) for name in ("settings", "options", "detector")),
        ):
            if isinstance(carrier, Group):
                for name in carrier.settings():
                    found[name].add(getattr(carrier, name))
        if isinstance(worker, Cleaning):
            found["types"].add(worker.types)

    def noting(work: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(work)
        def noted(worker: Any, *arguments: Any, **options: Any) -> Any:
            note(worker)
            return work(worker, *arguments, **options)

        return noted

    for kind, name in WORK:
        monkeypatch.setattr(kind, name, noting(getattr(kind, name)))
    return found


def check(seen: Seen, names: Iterable[str], work: Callable[[str, Any], object], folder: Path) -> None:
    """Each setting arrives if it is changed alone."""
    assert {name for name in names if not arrives(seen, name, work, folder)} == set()


def arrives(seen: Seen, name: str, work: Callable[[str, Any], object], folder: Path) -> bool:
    seen.clear()
    value = other(name, folder)
    work(name, value)
    return seen[name] == {value}
