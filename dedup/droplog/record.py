"""A record: what the drop log says of one page that was found to be a near-duplicate.

`Record` is the one table of the fields; docs/reference.md says what each means.  The writer, the reader, the database of
drops, CSV and the report have them from here.
"""

import json
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, NotRequired, TypedDict, TypeVar, Unpack, cast

from msgspec import Meta, Struct, convert
from msgspec.json import Decoder

from dedup.errors import SettingsError
from dedup.page.urls import host
from dedup.settings import Action
from dedup.values import Number, check

_T = TypeVar("_T")

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
#: A time as records have it, if its numbers are those of a time.
_WRITTEN = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T(?!24)[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}\+00:00")
#: No sum of these overflows.
_Count = Annotated[int, Meta(ge=0, le=1 << 32)]


class Record(TypedDict):
    """The fields of a record, in the order in which they are shown."""

    time: str
    url: str
    duplicate_of: str
    distance: Annotated[int, Meta(ge=0, le=64)]
    resemblance: Annotated[float, Meta(ge=0, le=1)]
    # Shingles that are the page's own; of these, those that the kept page has and has not; and the kept page's, which are gone.
    own: NotRequired[_Count | None]
    matching: NotRequired[_Count | None]
    new: NotRequired[_Count | None]
    gone: NotRequired[_Count | None]
    simhash: str
    duplicate_of_simhash: str
    tokens: _Count
    links: _Count
    bytes: NotRequired[_Count]
    rule: str
    noise: NotRequired[str | None]
    judge: NotRequired[str]
    action: Action
    referer: str | None
    canonical: NotRequired[str | None]
    agrees: NotRequired[bool | None]
    depth: _Count
    undone: NotRequired[str | None]


#: Their names, and those of the fields that a record may lack.
FIELDS, OPTIONAL = tuple(Record.__annotations__), Record.__optional_keys__
#: Reads a line and checks its fields, but for the time; it is stricter about texts than JSON in Python is.
_decode = Decoder(Record).decode


def _time(value: str) -> str:
    found = datetime.fromisoformat(value)
    if _WRITTEN.fullmatch(value):
        return value
    found = found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    return found.isoformat(timespec="milliseconds")


def make(**values: Unpack[Record]) -> Record:
    """Returns a record to be written.  Raises `ValueError` if a field is missing or wrong."""
    return _checked(values)


def parse(line: bytes | str) -> Record:
    """Returns the record on a line of a log, without fields that no record has.  Raises `ValueError` if it is no record."""
    with suppress(ValueError, OverflowError, RecursionError):
        return _in_order(_decode(line))
    # Python's JSON is slower, but it takes more texts.
    try:
        return _checked(json.loads(line))
    except RecursionError:
        raise ValueError("lists in lists, too deep to be read") from None


def _checked(found: Any) -> Record:
    try:
        return _in_order(convert(found, Record))
    except OverflowError as error:
        raise ValueError(str(error)) from None


def _in_order(found: Record) -> Record:
    found["time"] = _time(found["time"])
    return cast(Record, {name: found[name] for name in FIELDS if name in found})  # type: ignore[literal-required]


def read_lines(paths: Iterable[Path], kind: type[_T], longest: int) -> Iterator[_T]:
    """Yields the lines of a kind, of fewer than so many bytes, in the files that lie beside logs; all else is left out."""
    decode = Decoder(kind).decode
    for path in paths:
        with suppress(OSError), path.open("rb") as file:
            while line := file.readline(longest):
                with suppress(ValueError, RecursionError):
                    yield decode(line)


def now() -> str:
    """Returns the time as records have it."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def moment(text: str, now: datetime | None = None) -> str:
    """Returns a time as records have it, from an ISO date (UTC unless it says otherwise) or from how long ago it was.

    Raises `SettingsError`.

    >>> moment("2026-11-21"), moment("2026-11-21T10:00+02:00")
    ('2026-11-21T00:00:00.000+00:00', '2026-11-21T08:00:00.000+00:00')
    >>> moment("3d", now=datetime(2026, 11, 21, tzinfo=UTC))
    '2026-11-18T00:00:00.000+00:00'
    """
    try:
        if ago := re.fullmatch(r"(\d+)([smhdw])", text):
            return _time(str((now or datetime.now(UTC)) - timedelta(**{_UNITS[ago[2]]: int(ago[1])})))
        return _time(text)
    except (ValueError, OverflowError):
        raise SettingsError(
            name="since",
            value=text,
            allowed="a date such as 2026-11-21 or 2026-11-21T10:00 (UTC), or how long ago, such as 90s, 10m, 2h, 3d, 1w",
        ) from None


class Filter(Struct, frozen=True):
    """Chooses the records that meet every condition.  Raises `SettingsError` if a bound is out of range."""

    #: of the dropped page, or a domain that its host is below; without a port, any port passes
    host: str = ""
    of: str = ""  #: URL of the kept page
    min_distance: int = 0  #: bits
    max_resemblance: float = 1.0
    since: str = ""  #: a time, as `moment` gives it
    url: str = ""  #: of the dropped page

    def __post_init__(self) -> None:
        check("min_distance", self.min_distance, Number(0, 64))
        check("max_resemblance", self.max_resemblance, Number(0.0, 1.0))

    def passes(self, record: Record) -> bool:
        """Tells whether a record meets every condition."""
        return (
            record["distance"] >= self.min_distance
            and record["resemblance"] <= self.max_resemblance
            and record["time"] >= self.since
            and self.of in ("", record["duplicate_of"])
            and self.url in ("", record["url"])
            and (not self.host or self._is_at(host(record["url"])))
        )

    def _is_at(self, found: str) -> bool:
        wanted = self.host.lower()
        name = found if ":" in wanted else found.partition(":")[0]
        return name == wanted or name.endswith("." + wanted)
