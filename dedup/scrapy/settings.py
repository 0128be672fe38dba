"""The DEDUP_ settings of a project: read once when a crawl starts, and spelled so in every error.

`dedup.settings` says which there are.
"""

import difflib
from contextlib import suppress
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from scrapy import Spider
from scrapy.settings import BaseSettings

from dedup.errors import DedupError, IndexInUseError, IndexMismatchError, SettingsError
from dedup.scrapy.places import default_namespace, file_of, in_project, index_folder
from dedup.settings import SETTINGS, Action, DetectorSettings, Follow, IndexSettings, Types

if TYPE_CHECKING:
    from dedup.fingerprint.detector import Detector
    from dedup.frontier.partition import Shard
    from dedup.index import Index

__all__ = [
    "PREFIX",
    "LinkOptions",
    "Options",
    "in_memory",
    "is_enabled",
    "is_sharded",
    "keeps_text",
    "link_options",
    "read_settings",
    "shard_options",
    "shared_address",
    "spelled",
    "tables_asked",
    "unheard_shard",
    "weighs_links",
]

PREFIX = "DEDUP_"
#: Indexes that many processes share.
_SHARED = ("redis://", "rediss://", "unix://")
_SET_ONE = "set an index of redis://, rediss:// or unix://"


@dataclass(frozen=True, slots=True)
class Options:
    """The settings, checked."""

    detector: "Detector"
    index: "Index"
    action: Action
    min_depth: int
    types: Types
    log: str
    on_index_failure: str
    max_cluster: int
    keep_start: bool
    audit: float
    keep_text: bool
    show_all: bool
    incremental: bool


def _spell(name: str) -> str:
    return PREFIX + name.upper() if name in SETTINGS else name


def spelled(error: DedupError) -> DedupError:
    """The error in the words of a Scrapy project, where settings are called DEDUP_.

    >>> print(spelled(SettingsError(name="recall", value=2, allowed="a number from 0.5 to 0.9999")))
    DEDUP_RECALL is 2; allowed: a number from 0.5 to 0.9999
    >>> print(spelled(IndexMismatchError("it was built otherwise; use another index", settings=("index",))))
    it was built otherwise; use another index (DEDUP_INDEX)
    """
    if isinstance(error, SettingsError):
        return error.renamed(_spell)
    if isinstance(error, IndexMismatchError | IndexInUseError) and error.settings:
        return type(error)(f"{error} ({', '.join(map(_spell, error.settings))})")
    return error


def _read(settings: BaseSettings, name: str) -> Any:
    return SETTINGS[name].read(settings.get(_spell(name)))


def is_enabled(settings: BaseSettings) -> bool:
    """Whether the filter is wanted; a wrong value counts as yes, and is refused when the crawl starts."""
    try:
        return bool(_read(settings, "enabled"))
    except SettingsError:
        return True


def keeps_text(settings: BaseSettings) -> bool:
    """Whether the words of pages are to be stored; a wrong value counts as yes, and is refused when the crawl starts."""
    try:
        return bool(_read(settings, "keep_text"))
    except SettingsError:
        return True


def read_settings(settings: BaseSettings, spider: str = "", run: str | None = None) -> Options:
    """The options of a crawl; by default the index is that of a spider of the project.

    ``run`` is the name of an earlier run that goes on.
    Raises `SettingsError`: one line that names the setting, its value and what is allowed.
    """
    try:
        _check_names(settings)
        values = {name: _read(settings, name) for name in SETTINGS}
        values["namespace"] = values["namespace"] or default_namespace(settings.get("BOT_NAME"), spider)
        return _options(values, run)
    except SettingsError as error:
        raise spelled(error) from None


def tables_asked(settings: BaseSettings) -> int | None:
    """How many tables are asked for; None if that is left to the index.  Raises `SettingsError`."""
    try:
        tables: int | None = _read(settings, "tables")
    except SettingsError as error:
        raise spelled(error) from None
    return tables


@dataclass(frozen=True, slots=True)
class LinkOptions:
    """The settings about links, checked."""

    follow: Follow
    min_yield: float
    skip: bool
    explore: float
    priority: bool
    parked: str
    namespace: str


def link_options(settings: BaseSettings, spider: str = "") -> LinkOptions:
    """The options of a crawl about links.  Raises `SettingsError`."""
    try:
        values = {field.name: _read(settings, field.name) for field in fields(LinkOptions)}
    except SettingsError as error:
        raise spelled(error) from None
    values["namespace"] = values["namespace"] or default_namespace(settings.get("BOT_NAME"), spider)
    values["parked"] = in_project(values["parked"]) if values["parked"] else ""
    return LinkOptions(**values)


def is_sharded(settings: BaseSettings) -> bool:
    """Whether a crawl is to be one worker's share; a wrong value counts as yes, and is refused when the crawl starts."""
    return settings.get(_spell("shard")) not in (None, "")


def unheard_shard(spider: Spider, settings: BaseSettings) -> str:
    """What to say of a spider's argument that looks like the setting, and is not; nothing if there is none."""
    shard = getattr(spider, "shard", None)
    if not isinstance(shard, str) or is_sharded(settings):
        return ""
    from dedup.frontier.partition import Shard

    with suppress(SettingsError):
        setting = f"{_spell('shard')}={Shard.read(shard)}"
        return (
            f"The spider {spider.name} crawls all hosts, as shard={shard} is an argument, and no setting: to crawl one shard "
            f"of them, start it with -s {setting}"
        )
    return ""


def shared_address(settings: BaseSettings) -> str:
    """The index's Redis.  Raises `SettingsError` if the index is elsewhere."""
    try:
        address: str = _read(settings, "index") or "the file of this spider"
        if not address.startswith(_SHARED):
            raise SettingsError(name="index", value=address, why=f"but workers meet in a Redis; {_SET_ONE}")
    except SettingsError as error:
        raise spelled(error) from None
    return address


def shard_options(settings: BaseSettings, spider: str = "") -> "tuple[Shard, str, str] | None":
    """The shard of a worker, and where it meets the others: the index's Redis and its namespace; None without a shard.

    Raises `SettingsError`.
    """
    from dedup.frontier.partition import Shard

    try:
        values = {name: _read(settings, name) for name in ("shard", "index", "namespace")}
        if values["shard"] is None:
            return None
        shard = Shard.read(values["shard"])
        address = values["index"] or "the file of this spider"
        if not address.startswith(_SHARED):
            why = f"but the workers of a crawl meet in a Redis; {_SET_ONE}"
            raise SettingsError(name="shard", value=str(shard), others={"index": address}, why=why)
        if shard.number is None and settings.get("JOBDIR"):
            why = "but any free shard is not that of the job: with a JOBDIR, name the shard, such as 1/4"
            raise SettingsError(
                name="shard", value=str(shard), others={"JOBDIR": settings["JOBDIR"]}, why=why
            )
    except SettingsError as error:
        raise spelled(error) from None
    return shard, address, values["namespace"] or default_namespace(settings.get("BOT_NAME"), spider)


def weighs_links(settings: BaseSettings) -> bool:
    """Whether any setting asks what links are expected to bring; wrong values are refused elsewhere."""
    try:
        options = link_options(settings)
    except SettingsError:
        return False
    return options.follow != "never" or options.skip or options.priority


def in_memory(settings: BaseSettings) -> BaseSettings | None:
    """The same settings with an index in memory; None if that can't take the place of what they ask for.

    A crawl hands over every content of its own, whatever earlier ones have kept.  So it needs no file, unless that was
    chosen, or is asked what has changed.
    """
    if _read(settings, "index") or _read(settings, "incremental"):
        return None
    copy = settings.copy()
    copy.frozen = False
    copy.set(_spell("index"), "memory:", "cmdline")
    return copy


def _check_names(settings: BaseSettings) -> None:
    known = list(map(_spell, SETTINGS))
    for name in settings:
        if isinstance(name, str) and name.startswith(PREFIX) and name not in known:
            near = difflib.get_close_matches(name.removeprefix(PREFIX).lower(), SETTINGS, n=1)
            hint = f"did you mean {_spell(near[0])}?" if near else f"the settings are {', '.join(known)}"
            raise SettingsError(f"{name} is not a setting; {hint}")


def _options(values: dict[str, Any], run: str | None) -> Options:
    # Not above: they bring numpy and more, which a command that only lists the spiders does without.
    from dedup.fingerprint.detector import Detector
    from dedup.index import open_index

    namespace = values["namespace"]
    address = values["index"] or f"file:{index_folder()}/{file_of(namespace)}"
    scheme, _, path = address.partition(":")
    if scheme == "file" and path:
        address = f"file:{in_project(path)}"
    values["log"] = in_project(values["log"]) if values["log"] else ""
    detector = Detector(**_choose(values, DetectorSettings))
    planned = _choose(values, IndexSettings)
    index = open_index(address, detector, namespace=namespace, run=run, **planned)
    if values["incremental"] and not index.persistent:
        why = "which forgets all pages when its crawl ends"
        raise SettingsError(name="incremental", value=True, others={"index": address}, why=why)
    return Options(**_choose(values, Options) | {"detector": detector, "index": index})


def _choose(values: dict[str, Any], kind: type) -> dict[str, Any]:
    """The values that are fields of a dataclass."""
    return {field.name: values[field.name] for field in fields(kind) if field.name in values}
