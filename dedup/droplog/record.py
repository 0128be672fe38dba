"""A record: what the drop log says of one page that was found to be a near-duplicate.

`Record` is the one table of the fields.  The writer, the reader, the database of drops, CSV, the report and the
documents have them from here.
"""

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from reprlib import repr as shortened
from typing import (
    Annotated,
    Any,
    NamedTuple,
    NotRequired,
    TypedDict,
    Unpack,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

from msgspec import Meta, Struct, convert
from msgspec.json import Decoder

from dedup.errors import SettingsError
from dedup.page.urls import host
from dedup.settings import Action
from dedup.values import Number, check

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
#: A time as records have it, if its numbers are those of a time.
_WRITTEN = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T(?!24)[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}\+00:00")
#: No sum of these overflows.
_Count = Annotated[int, Meta(ge=0, le=1 << 32)]


def _says(text: str, *, is_url: bool = False) -> Meta:
    return Meta(description=text, extra={"is_url": is_url})


class Record(TypedDict):
    """The fields of a record, in the order in which they are shown: what each may be, and what it says."""

    time: Annotated[str, _says("when the page was judged: an ISO 8601 time in UTC")]
    url: Annotated[
        str, _says("the page's URL, without user and password; of a row without one, its name", is_url=True)
    ]
    duplicate_of: Annotated[
        str,
        _says(
            'the URL of the kept page that it is like; with the rule "soft_404", an address that can\'t exist and shows the same',
            is_url=True,
        ),
    ]
    distance: Annotated[
        int, Meta(ge=0, le=64), _says("in how many of 64 bits the simhashes of both pages differ")
    ]
    resemblance: Annotated[
        float, Meta(ge=0, le=1), _says("the share of shingles that both pages have, 0 to 1")
    ]
    own: NotRequired[
        Annotated[
            _Count | None,
            _says(
                "how many shingles are the page's own, and not the chrome of its host; null for an exact one and where "
                "nothing is known of the host; may be missing"
            ),
        ]
    ]
    matching: NotRequired[
        Annotated[_Count | None, _says("how many of these the kept page has, too; null and missing likewise")]
    ]
    new: NotRequired[Annotated[_Count | None, _says("how many of these the kept page has not; likewise")]]
    gone: NotRequired[
        Annotated[
            _Count | None, _says("how many shingles are the kept page's own, and not on the page; likewise")
        ]
    ]
    simhash: Annotated[str, _says("the page's simhash, 16 hexadecimal digits")]
    duplicate_of_simhash: Annotated[str, _says("the kept page's simhash, likewise")]
    tokens: Annotated[_Count, _says("how many tokens the page has")]
    links: Annotated[_Count, _says("how many different URLs the page links to")]
    bytes: NotRequired[Annotated[_Count, _says("the size of the page in bytes, unpacked; may be missing")]]
    rule: Annotated[
        str,
        _says(
            'how the page was found: "exact" (it is equal), "rare" (by a rare shingle), "probe" '
            '(all that differs was seen to be noise), "address" (its address means the kept page, as other pairs have shown, and '
            'all of its unique content is there), "no_vary_search" (by the word of its site: it was not fetched, and the '
            'figures are those of the kept page), "soft_404" (its host shows the same where nothing is), or the method'
        ),
    ]
    noise: NotRequired[
        Annotated[
            str | None,
            _says(
                'with the rule "probe", the words of the page that were seen to be noise, or are its name; else null; may '
                "be missing"
            ),
        ]
    ]
    judge: NotRequired[
        Annotated[
            str, _says("who has decided: one of the judges of a page, or no_vary_search; may be missing")
        ]
    ]
    action: Annotated[Action, _says(f"what was done with the page: {', '.join(get_args(Action))}")]
    referer: Annotated[str | None, _says("the URL of the page that linked to it, or null", is_url=True)]
    canonical: NotRequired[
        Annotated[
            str | None, _says("the canonical URL that the page names, or null; may be missing", is_url=True)
        ]
    ]
    agrees: NotRequired[
        Annotated[
            bool | None,
            _says(
                "whether that URL says the same as the verdict: true if it is the kept page's, false if it is the page's "
                "own, else null; may be missing"
            ),
        ]
    ]
    depth: Annotated[_Count, _says("how many links lie between the page and the start")]
    undone: NotRequired[
        Annotated[
            str | None,
            _says(
                "why the page was fetched again after all: its record is written once more, with this and the time; null in "
                "the first one; may be missing"
            ),
        ]
    ]


class Field(NamedTuple):
    """How a field is checked and explained."""

    kind: Any  #: its type, as msgspec checks it
    text: str  #: what the field holds, for messages and documents
    is_url: bool


def _field(hint: Any) -> Field:
    kind = get_args(hint)[0] if get_origin(hint) is NotRequired else hint
    meta = kind.__metadata__[-1]
    return Field(kind, meta.description, meta.extra["is_url"])


#: The same table, by name.
FIELDS = {name: _field(hint) for name, hint in get_type_hints(Record, include_extras=True).items()}
#: The fields that a record may lack.
OPTIONAL = Record.__optional_keys__
#: Reads a line and checks its fields, but for the time; it is stricter about texts than JSON in Python is.
_decode = Decoder(Record).decode


def _time(value: str) -> str:
    found = datetime.fromisoformat(value)
    if _WRITTEN.fullmatch(value):
        return value
    found = found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    return found.isoformat(timespec="milliseconds")


def make(**values: Unpack[Record]) -> Record:
    """Returns a record to be written.  Raises `ValueError` if a field is missing, unknown or wrong."""
    if unknown := values.keys() - FIELDS.keys():
        raise ValueError(f"a record has no fields {sorted(unknown)}; allowed: {', '.join(FIELDS)}")
    return _checked(values)


def parse(line: bytes | str) -> Record:
    """Returns the record on a line of a log, without fields that no record has.  Raises `ValueError` if it is no record."""
    with suppress(ValueError, OverflowError, RecursionError):
        return _in_order(_decode(line))
    # Python's JSON is slower, but it takes more texts, and `_checked` tells what is wrong.
    try:
        found = json.loads(line)
    except RecursionError:
        found = None
    if isinstance(found, dict):
        return _checked(found)
    raise ValueError("a record is an object in JSON")


def _checked(found: Mapping[str, Any]) -> Record:
    try:
        return _in_order(convert(found, Record))
    except (ValueError, OverflowError):
        raise ValueError(_fault(found)) from None


def _in_order(found: Record) -> Record:
    """Its fields in their order, with the time as records have it."""
    found["time"] = _time(found["time"])
    return cast(Record, {name: found[name] for name in FIELDS if name in found})  # type: ignore[literal-required]


def _fault(found: Mapping[str, Any]) -> str:
    """Returns what is wrong with a record, by its first field that is."""
    for name, field in FIELDS.items():
        if name in found:
            try:
                value = convert(found[name], field.kind)
                if name == "time":
                    _time(value)
            except (ValueError, OverflowError):
                return f"{name} is {shortened(found[name])}; allowed: {field.text}"
        elif name not in OPTIONAL:
            return f"{name} is missing; it is {field.text}"
    raise AssertionError("nothing is wrong with it")


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
