"""The DEDUP_ settings: their names, defaults and types, read once when a crawl starts.

Ranges are checked where the values are used (`Detector`, `open_index`), so that a library user and a
crawl get the same answer.
"""

import difflib
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from scrapy.exceptions import NotConfigured
from scrapy.settings import BaseSettings
from scrapy.utils.project import data_path

from dedup.errors import SettingsError
from dedup.fingerprint.detector import Detector
from dedup.index import Index, open_index
from dedup.values import check_number

__all__ = ["DEFAULTS", "Options", "is_enabled", "read_settings"]

PREFIX = "DEDUP_"
_detector = Detector()

#: Every setting, without its prefix, and its default.
DEFAULTS: dict[str, Any] = {
    "ENABLED": True,
    "ACTION": "drop",
    "INDEX": None,  # a file under the project's .scrapy/dedup
    "NAMESPACE": None,  # the bot's name
    "MAX_DISTANCE": _detector.max_distance,
    "MIN_RESEMBLANCE": _detector.min_resemblance,
    "SHINGLE_SIZE": _detector.shingle_size,
    "MIN_TOKENS": _detector.min_tokens,
    "KEEP_URLS": _detector.keep_urls,
    "SCOPE": "all",
    "EXPECTED_PAGES": 1_000_000,
    "TABLES": None,
    "METHOD": _detector.method,
    "RECALL": _detector.recall,
    "SUPERSHINGLE_SIZE": _detector.supershingle_size,
    "MEGASHINGLE_SIZE": _detector.megashingle_size,
    "LOG": "duplicates.jsonl",
    "ON_INDEX_FAILURE": "keep",
    "MAX_CLUSTER": 1_000,
    "AUDIT": 0.0,
    "KEEP_TEXT": False,
    "HASH_KEY": _detector.hash_key,
}
_CHOICES = {"ACTION": ("drop", "nofollow", "mark"), "ON_INDEX_FAILURE": ("keep", "pause", "stop")}
_FLAGS = {"true": True, "1": True, "false": False, "0": False}


@dataclass(frozen=True, slots=True)
class Options:
    """The settings, checked."""

    detector: Detector
    index: Index
    action: str
    log: str
    on_index_failure: str
    max_cluster: int
    audit: float
    keep_text: bool


def _flag(value: object) -> bool:
    return _FLAGS[str(value).lower()]


def _whole(value: object) -> object:
    return int(value) if isinstance(value, str) and re.fullmatch(r"[+-]?\d+", value) else value


def _number(value: object) -> object:
    return float(value) if isinstance(value, str) else value


def _text(value: Any) -> str:
    text = os.fspath(value)
    if not isinstance(text, str):
        raise TypeError
    return text


#: How a value, which is a string if it comes from the command line, is read.
_READERS: dict[str, tuple[Callable[[Any], Any], str]] = {
    **dict.fromkeys(("ENABLED", "KEEP_URLS", "KEEP_TEXT"), (_flag, "True, False")),
    **dict.fromkeys(
        (
            "MAX_DISTANCE",
            "SHINGLE_SIZE",
            "MIN_TOKENS",
            "EXPECTED_PAGES",
            "TABLES",
            "MAX_CLUSTER",
            "SUPERSHINGLE_SIZE",
            "MEGASHINGLE_SIZE",
        ),
        (_whole, "a whole number"),
    ),
    **dict.fromkeys(("MIN_RESEMBLANCE", "RECALL", "AUDIT"), (_number, "a number from 0 to 1")),
    **dict.fromkeys(
        ("ACTION", "INDEX", "NAMESPACE", "SCOPE", "METHOD", "LOG", "ON_INDEX_FAILURE", "HASH_KEY"),
        (_text, "text"),
    ),
}


def _read(settings: BaseSettings, name: str) -> Any:
    value = settings.get(PREFIX + name)
    if value is None or (value == "" and name in {"INDEX", "NAMESPACE", "TABLES"}):
        return DEFAULTS[name]
    reader, allowed = _READERS[name]
    if name in _CHOICES:
        allowed = ", ".join(map(repr, _CHOICES[name]))
        if value not in _CHOICES[name]:
            raise SettingsError(f"{PREFIX}{name} is {value!r}; allowed: {allowed}")
    try:
        return reader(value)
    except (KeyError, TypeError, ValueError):
        shown = "not text" if name == "HASH_KEY" else repr(value)
        raise SettingsError(f"{PREFIX}{name} is {shown}; allowed: {allowed}") from None


def is_enabled(settings: BaseSettings) -> bool:
    """Whether the filter is wanted; a wrong value counts as yes, and is refused when the crawl starts."""
    return str(settings.get("DEDUP_ENABLED", True)).lower() not in {"false", "0"}


def read_settings(settings: BaseSettings) -> Options:
    """The options of a crawl.

    Raises `SettingsError`: one line that names the setting, its value and what is allowed.
    """
    for name in settings:
        if isinstance(name, str) and name.startswith(PREFIX) and name.removeprefix(PREFIX) not in DEFAULTS:
            near = difflib.get_close_matches(name.removeprefix(PREFIX), DEFAULTS, n=1)
            known = ", ".join(PREFIX + known for known in DEFAULTS)
            hint = f"did you mean {PREFIX}{near[0]}?" if near else f"the settings are {known}"
            raise SettingsError(f"{name} is no setting of ours; {hint}")
    values = {name: _read(settings, name) for name in DEFAULTS}
    check_number(f"{PREFIX}MAX_CLUSTER", values["MAX_CLUSTER"], 0, 10**12)
    check_number(f"{PREFIX}AUDIT", values["AUDIT"], 0.0, 1.0)
    namespace = values["NAMESPACE"] or settings.get("BOT_NAME") or "dedup"
    file_name = re.sub(r"[^A-Za-z0-9._-]", "_", namespace)
    address = values["INDEX"] or f"file:{_folder()}/{file_name}.sqlite"
    fields = (
        "max_distance",
        "min_resemblance",
        "shingle_size",
        "min_tokens",
        "keep_urls",
        "hash_key",
        "method",
        "recall",
        "supershingle_size",
        "megashingle_size",
    )
    try:
        detector = Detector(**{field: values[field.upper()] for field in fields})
        options = {field: values[field.upper()] for field in ("scope", "expected_pages", "tables")}
        index = open_index(address, detector, namespace=namespace, **options)
    except SettingsError as error:
        raise SettingsError(PREFIX + str(error)) from None
    others = ("action", "log", "on_index_failure", "max_cluster", "audit", "keep_text")
    return Options(detector, index, **{name: values[name.upper()] for name in others})


def _folder() -> str:
    """Where the project, or without one this folder, keeps its indexes."""
    try:
        return str(data_path("dedup"))
    except NotConfigured:
        return ".scrapy/dedup"
