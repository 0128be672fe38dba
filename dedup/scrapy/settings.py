"""The DEDUP_ settings of a project: read once when a crawl starts, and spelled so in every error.

`dedup.settings` says which there are.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from scrapy import Spider
from scrapy.settings import BaseSettings

from dedup.errors import DedupError, SettingsError
from dedup.scrapy.places import default_namespace, file_of, history_of, in_project, index_folder
from dedup.settings import (
    GROUPS,
    PROFILES,
    SETTINGS,
    CrawlSettings,
    DetectorSettings,
    FilterSettings,
    IndexSettings,
    LinkSettings,
)
from dedup.values import Group, LogPath

if TYPE_CHECKING:
    from dedup.fingerprint.detector import Detector
    from dedup.index import Index

G = TypeVar("G", bound=Group)

PREFIX = "DEDUP_"
#: Indexes that many processes share.
_SHARED = ("redis://", "rediss://", "unix://")


@dataclass(frozen=True, slots=True)
class Options:
    """The settings of a crawl, checked, and what is made of them."""

    crawl: CrawlSettings
    filter: FilterSettings
    detector: "Detector"
    index: "Index"
    #: Where that of the site is; None for an index in memory: beside the drop log.
    history: Path | None = None


def _spell(name: str) -> str:
    return PREFIX + name.upper() if name in SETTINGS else name


def spelled(error: DedupError) -> DedupError:
    """Returns the error in the words of a Scrapy project, where settings are called DEDUP_.

    >>> print(spelled(SettingsError(name="recall", value=2, allowed="a number from 0.5 to 0.9999")))
    DEDUP_RECALL is 2; allowed: a number from 0.5 to 0.9999
    >>> from dedup.errors import IndexMismatchError
    >>> print(spelled(IndexMismatchError("it was built otherwise; use another index", settings=("index",))))
    it was built otherwise; use another index (DEDUP_INDEX)
    """
    if isinstance(error, SettingsError):
        return error.renamed(_spell)
    if error.settings:
        return type(error)(f"{error} ({', '.join(map(_spell, error.settings))})")
    return error


@contextmanager
def _spelling() -> Iterator[None]:
    """Errors are raised in the words of a Scrapy project."""
    try:
        yield
    except SettingsError as error:
        raise spelled(error) from None


def read_setting(settings: BaseSettings, name: str) -> Any:
    """Returns the value of a setting, by the profile where it is not set.  Raises `SettingsError`, not yet `spelled`."""
    given = settings.get(_spell(name))
    if given is None and name != "profile":
        given = PROFILES[read_setting(settings, "profile")].get(name)
    value = SETTINGS[name].read(given)
    return in_project(value) if value and isinstance(SETTINGS[name].kind, LogPath) else value


def asks_for(settings: BaseSettings, flag: str) -> bool:
    """Returns whether a flag is set; a wrong value counts as yes, and is refused when the crawl starts."""
    try:
        return bool(read_setting(settings, flag))
    except SettingsError:
        return True


def read_group(settings: BaseSettings, group: type[G]) -> G:
    """Returns the settings of a group.

    Raises `SettingsError`: one line that names the setting, its value and what is allowed.
    """
    with _spelling():
        return group(**{name: read_setting(settings, name) for name in group.settings()})


def namespace_of(settings: BaseSettings, spider: str = "") -> str:
    """Whose pages are compared in a crawl of a spider.  Raises `SettingsError`."""
    with _spelling():
        return read_setting(settings, "namespace") or default_namespace(settings.get("BOT_NAME"), spider)


def read_settings(settings: BaseSettings, spider: str = "", run: str | None = None) -> Options:
    """Returns the options of a crawl; by default the index is that of a spider of the project.

    ``run`` is the name of an earlier run that goes on.  All settings are checked.  Raises `SettingsError`.
    """
    # Not above: they bring numpy and more, which a command that only lists the spiders does without.
    from dedup.fingerprint.detector import Detector
    from dedup.index import open_index

    _check_names(settings)
    for group in GROUPS:
        read_group(settings, group)
    crawl, policy = read_group(settings, CrawlSettings), read_group(settings, FilterSettings)
    namespace = namespace_of(settings, spider)
    address = crawl.index or f"file:{index_folder()}/{file_of(namespace)}"
    scheme, _, path = address.partition(":")
    if scheme == "file" and path:
        address = f"file:{in_project(path)}"
    with _spelling():
        detector = Detector(**vars(read_group(settings, DetectorSettings)))
        planned = vars(read_group(settings, IndexSettings))
        index = open_index(address, detector, namespace=namespace, run=run, **planned)
        if policy.incremental and not index.persistent:
            why = "which forgets all pages when its crawl ends"
            raise SettingsError(name="incremental", value=True, others={"index": address}, why=why)
    history = history_of(address, namespace) if index.persistent else None
    return Options(crawl, policy, detector, index, history)


def check_for_crawl(options: Options) -> None:
    """Raises `SettingsError` for a threshold of the rule that a crawl doesn't go by."""
    detector, index = options.detector, options.index.settings
    idle, instead, group = (
        ("min_resemblance", "min_containment", detector)
        if index.chrome
        else ("min_containment", "min_resemblance", index)
    )
    value = getattr(group, idle)
    plans_bands = idle == "min_resemblance" and detector.method == "minhash"
    if value != SETTINGS[idle].default and not plans_bands:
        what = "what is own to each page has to match" if index.chrome else "whole pages are compared"
        why = f"so {what}, and {_spell(instead)} says how much of it must: set that instead"
        with _spelling():
            raise SettingsError(name=idle, value=value, others={"chrome": index.chrome}, why=why)


def is_sharded(settings: BaseSettings) -> bool:
    """Returns whether a crawl has a shard; a wrong value counts as yes, and is refused when the crawl starts."""
    return settings.get(_spell("shard")) not in (None, "")


def unheard_shard(spider: Spider, settings: BaseSettings) -> str:
    """Returns a warning if a spider has an argument that looks like the setting ``shard``; else ""."""
    shard = getattr(spider, "shard", None)
    if not isinstance(shard, str) or is_sharded(settings) or not re.fullmatch(r"(auto|\d+)/\d+", shard):
        return ""
    return (
        f"The spider {spider.name} crawls all hosts, since shard={shard} is an argument of the spider, and not a setting: to "
        f"crawl one shard of them, start it with -s {_spell('shard')}={shard}"
    )


def shared_address(settings: BaseSettings, shard: str | None = None) -> str:
    """Returns the index's Redis, in which the workers of a crawl meet.  Raises `SettingsError` if the index is elsewhere."""
    with _spelling():
        address: str = read_setting(settings, "index") or "the file of this spider"
        if not address.startswith(_SHARED):
            asked = [("shard", shard)] if shard else []
            (name, value), *others = *asked, ("index", address)
            why = "but the workers of a crawl meet in a Redis; set an index of redis://, rediss:// or unix://"
            raise SettingsError(name=name, value=value, others=dict(others), why=why)
    return address


def weighs_links(settings: BaseSettings) -> bool:
    """Returns whether links of near-duplicates are followed; wrong values are refused elsewhere."""
    try:
        return read_group(settings, LinkSettings).follow != "never"
    except SettingsError:
        return False


def may_revisit(settings: BaseSettings) -> bool:
    """Returns whether a crawl may ask for a page only if it has changed."""
    is_wanted = asks_for(settings, "incremental") and settings.get("DEDUP_INCREMENTAL") != "words"
    return is_wanted and asks_for(settings, "conditional")


def is_chosen(settings: BaseSettings, name: str) -> bool:
    """Returns whether a setting has another value than by default."""
    return bool(read_setting(settings, name) != SETTINGS[name].default)


def in_memory(settings: BaseSettings) -> BaseSettings | None:
    """Returns the same settings with an index in memory; None if that would not do.

    A crawl hands over every content, whatever earlier ones have kept.  So it needs no file, unless the settings name
    one, or ask what has changed.
    """
    if read_setting(settings, "index") or read_setting(settings, "incremental"):
        return None
    copy = settings.copy()
    copy.frozen = False
    copy.set(_spell("index"), "memory:", "cmdline")
    return copy


def _check_names(settings: BaseSettings) -> None:
    known = list(map(_spell, SETTINGS))
    for name in settings:
        if isinstance(name, str) and name.startswith(PREFIX) and name not in known:
            from difflib import get_close_matches  # not above: hardly any crawl needs it

            near = get_close_matches(name.removeprefix(PREFIX).lower(), SETTINGS, n=1)
            hint = f"did you mean {_spell(near[0])}?" if near else f"the settings are {', '.join(known)}"
            raise SettingsError(f"{name} is not a setting; {hint}")
