"""A record: what the drop log says of one page that was found to be a near-duplicate.

`Record` is the one table of the fields.  The writer, the reader, the database of drops, CSV, the report and the
documents have them from here.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from reprlib import repr as shortened
from types import NoneType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    NotRequired,
    TypedDict,
    Union,
    Unpack,
    cast,
    get_args,
    get_type_hints,
)

from dedup.errors import SettingsError
from dedup.page.urls import host
from dedup.settings import Action
from dedup.values import Number, check

if TYPE_CHECKING:
    from msgspec.json import Decoder

__all__ = ["FIELDS", "OPTIONAL", "Field", "Filter", "Record", "make", "moment", "parse"]

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


@dataclass(frozen=True, slots=True)
class Field:
    """How a field is read, stored and explained."""

    #: JSON's value -> the record's; TypeError, ValueError, OverflowError if it is wrong
    read: Callable[[Any], Any]
    column: str  #: the type of its column in SQL
    text: str  #: what the field holds, for messages and documents
    is_url: bool = False
    most: int | None = None  #: of a number, which is 0 at least


#: A time as records have it, if its numbers are those of a time.
_WRITTEN = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T(?!24)[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}\+00:00")


def _time(value: Any) -> str:
    found = datetime.fromisoformat(value)
    if _WRITTEN.fullmatch(value):
        return str(value)
    found = found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    return found.isoformat(timespec="milliseconds")


def _or_none(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else read(value)


def _as_it_is(is_right: Callable[[Any], bool]) -> Callable[[Any], Any]:
    def read(value: Any) -> Any:
        if not is_right(value):
            raise ValueError
        return value

    return read


def _number(high: int, *kinds: type) -> Callable[[Any], Any]:
    return _as_it_is(lambda value: type(value) in kinds and 0 <= value <= high)


_text = _as_it_is(lambda value: type(value) is str)
_text_or_none = _as_it_is(lambda value: value is None or type(value) is str)
_action = _as_it_is(lambda value: value in get_args(Action))
_MOST = 1 << 32  # no sum of counts overflows
_count = _number(_MOST, int)


_TEXT = partial(Field, _text, "TEXT")
_URL = partial(Field, _text, "TEXT", is_url=True)
_COUNT = partial(Field, _count, "INTEGER", most=_MOST)
_COUNT_OR_NONE = partial(Field, _or_none(_count), "INTEGER", most=_MOST)


class Record(TypedDict):
    """The fields of a record, in the order in which they are shown."""

    time: Annotated[str, Field(_time, "TEXT", "when the page was judged: an ISO 8601 time in UTC")]
    url: Annotated[str, _URL("the page's URL, without user and password")]
    duplicate_of: Annotated[str, _URL("the URL of the kept page that it is like")]
    distance: Annotated[
        int,
        Field(
            _number(64, int), "INTEGER", "in how many of 64 bits the simhashes of both pages differ", most=64
        ),
    ]
    resemblance: Annotated[
        float,
        Field(_number(1, int, float), "REAL", "the share of shingles that both pages have, 0 to 1", most=1),
    ]
    own: Annotated[
        NotRequired[int | None],
        _COUNT_OR_NONE(
            "how many shingles are the page's own, and not the chrome of its host; null for an exact one and "
            "where nothing is known of the host; may be missing",
        ),
    ]
    matching: Annotated[
        NotRequired[int | None],
        _COUNT_OR_NONE("how many of these the kept page has, too; null and missing likewise"),
    ]
    new: Annotated[
        NotRequired[int | None],
        _COUNT_OR_NONE("how many of these the kept page has not; likewise"),
    ]
    simhash: Annotated[str, _TEXT("the page's simhash, 16 hexadecimal digits")]
    duplicate_of_simhash: Annotated[str, _TEXT("the kept page's simhash, likewise")]
    tokens: Annotated[int, _COUNT("how many tokens the page has")]
    links: Annotated[int, _COUNT("how many different URLs the page links to")]
    bytes: Annotated[NotRequired[int], _COUNT("the size of the page in bytes, unpacked; may be missing")]
    rule: Annotated[
        str,
        _TEXT(
            'how the page was found: "exact" (equal tokens), "view" (equal main views), "rare" (by a rare shingle), "probe" (all that differs was seen to be noise), or the method'
        ),
    ]
    action: Annotated[
        Action, Field(_action, "TEXT", f"what was done with the page: {', '.join(get_args(Action))}")
    ]
    referer: Annotated[
        str | None,
        Field(_or_none(_text), "TEXT", "the URL of the page that linked to it, or null", is_url=True),
    ]
    canonical: Annotated[
        NotRequired[str | None],
        Field(
            _or_none(_text),
            "TEXT",
            "the canonical URL that the page names, or null; may be missing",
            is_url=True,
        ),
    ]
    agrees: Annotated[
        NotRequired[bool | None],
        Field(
            _or_none(_as_it_is(lambda value: type(value) is bool)),
            "INTEGER",
            "whether that URL says the same as the verdict: true if it is the kept page's, false if it is the page's "
            "own, else null; may be missing",
        ),
    ]
    depth: Annotated[int, _COUNT("how many links lie between the page and the start")]


#: The same table, by name.
FIELDS: dict[str, Field] = {
    name: hint.__metadata__[0] for name, hint in get_type_hints(Record, include_extras=True).items()
}
_ORDER = tuple(FIELDS)
#: The fields that a record may lack.
OPTIONAL = Record.__optional_keys__


def make(**values: Unpack[Record]) -> Record:
    """A record to be written.  Raises `ValueError` if a field is missing, unknown or wrong."""
    if unknown := values.keys() - FIELDS.keys():
        raise ValueError(f"a record has no fields {sorted(unknown)}; allowed: {', '.join(FIELDS)}")
    return _checked(values)


def parse(line: bytes | str) -> Record:
    """The record on a line of a log, without fields that no record has.  Raises `ValueError` if it is no record."""
    return _parse_fast(line) or _parse(line)


def _parse_fast(line: bytes | str) -> Record | None:
    """The same in a quarter of the time; None for lines that are no record, and for some that are one."""
    try:
        found = _decoder().decode(line)
        found["time"] = _time(found["time"])
    except (ValueError, OverflowError, RecursionError):
        return None
    if tuple(found) == _ORDER:
        return found
    return cast(Record, {name: found[name] for name in FIELDS if name in found})  # type: ignore[literal-required]


@cache
def _decoder() -> "Decoder[Record]":
    """Reads a line and checks its fields, but for the time; it is stricter about texts than JSON in Python is."""
    import msgspec  # not above: a crawl only writes

    fields: dict[str, Any] = {}
    for name, kind in get_type_hints(Record).items():
        if (most := FIELDS[name].most) is not None:
            # A float may be written as a whole number, and stays one.
            kinds = (int, float) if kind is float else get_args(kind) or (kind,)
            bounds = msgspec.Meta(ge=0, le=most)
            kind = Union[*(one if one is NoneType else Annotated[one, bounds] for one in kinds)]
        fields[name] = NotRequired[kind] if name in OPTIONAL else kind
    return msgspec.json.Decoder(TypedDict("Line", fields))  # type: ignore[operator]


def _parse(line: bytes | str) -> Record:
    try:
        found = json.loads(line)
    except RecursionError:
        found = None
    if isinstance(found, dict):
        return _checked(found)
    raise ValueError("a record is an object in JSON")


def _checked(found: Mapping[str, Any]) -> Record:
    record: dict[str, Any] = {}
    for name, field in FIELDS.items():
        if name in found:
            try:
                record[name] = field.read(found[name])
            except (TypeError, ValueError, OverflowError):
                raise ValueError(f"{name} is {shortened(found[name])}; allowed: {field.text}") from None
        elif name not in OPTIONAL:
            raise ValueError(f"{name} is missing; it is {field.text}")
    return cast(Record, record)


def moment(text: str, now: datetime | None = None) -> str:
    """A time as records have it, from an ISO date (UTC unless it says otherwise) or from how long ago it was.

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


@dataclass(frozen=True, slots=True)
class Filter:
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
