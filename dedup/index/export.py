"""An index as JSON Lines: a header with the parameters, then an object per host, then one per page.

What any store gives out, any store of the same parameters takes; the table plan may be another.
The hosts come first, so that an import that is interrupted leaves no table older than a page.
"""

import json
import struct
from binascii import a2b_base64, b2a_base64
from collections.abc import Callable, Mapping
from typing import Any

from msgspec import MsgspecError, convert

from dedup.fingerprint.chrome import Chrome
from dedup.fingerprint.fingerprint import RARE, Called
from dedup.index.contract import Index
from dedup.index.entry import Entry, scope_mask, storable_url
from dedup.index.hosts import packed, unpacked
from dedup.index.parameters import FORMAT as PAGE_FORMAT
from dedup.index.parameters import check_parameters

#: Changes whenever lines would be read differently.
FORMAT = 4
_NUMBERS = {count: struct.Struct(f">{count}Q") for count in (1, 2, 3, RARE)}


def _parameters(index: Index) -> dict[str, str]:
    fields = {name: value for name, value in index.parameters.texts.items() if name != "tables"}
    return fields | {"format": str(PAGE_FORMAT)}  # that of the pages, whatever the store


def header_line(index: Index) -> str:
    """Returns the first line."""
    return json.dumps({"shingleback_index": FORMAT, "parameters": _parameters(index)})


def page_line(entry: Entry) -> str:
    """Returns the line of a page."""
    found: dict[str, Any] = dict(zip(Entry._fields, entry, strict=True))
    for name in KEYS:
        found[name] = _hex(found[name])
    found["bands"], found["sketch"] = [*map(_hex, entry.bands)], _base64(entry.sketch)
    found["called"], found["rare"] = _hex(*entry.called), _hex(*entry.rare)
    return json.dumps(found)


def host_line(name: str, table: Chrome) -> str:
    """Returns the line of a host."""
    return json.dumps({"host": name, "chrome": _base64(packed(table.to_bytes()))})


def read_header(line: bytes, index: Index, what: str) -> None:
    """Checks the first line of ``what``.

    Raises ValueError if that is no header, and `IndexMismatchError` if its parameters are not the index's.
    """
    header = _object(line)
    found, parameters = header.get("shingleback_index"), header.get("parameters")
    if type(found) is not int or not isinstance(parameters, dict):
        raise ValueError("it is not the header of an export")
    if found != FORMAT:
        raise ValueError(
            f"it is the header of an export of format {found}, and this version reads {FORMAT}; go on with the "
            "version that wrote it, or start anew with another index"
        )
    check_parameters(what, parameters, _parameters(index))


def read_line(line: bytes, index: Index) -> Entry | tuple[str, Chrome]:
    """Returns the page of a line, in the scope that its URL has; or the name of a host, and its table.

    Raises ValueError: one line that says which field is wrong, and what is allowed.
    """
    found = _object(line)
    if "host" in found:
        values = _fields(found, HOST_FIELDS)
        return values["host"], Chrome.from_bytes(values["chrome"])
    entry = Entry(**_fields(found, FIELDS))
    entry = entry._replace(scope=scope_mask(index.settings.scope, entry.url))
    if wrong := index.parameters.flaw(entry):
        raise ValueError(wrong)
    return entry


def _fields(found: Mapping[str, Any], fields: "Fields") -> dict[str, Any]:
    if missing := fields.keys() ^ found.keys():
        raise ValueError(f"a field is missing or unknown: {ascii(min(missing))[:60]}")
    values = {}
    for name, (read, allowed) in fields.items():
        try:
            values[name] = read(found[name])
        except (ValueError, TypeError, MsgspecError, struct.error):
            raise ValueError(f"{name} is {ascii(found[name])[:60]}; allowed: {allowed}") from None
    return values


def _object(line: bytes) -> dict[str, Any]:
    try:
        found = json.loads(line.decode())
        return found if type(found) is dict else {**found}
    except (ValueError, TypeError, RecursionError):
        raise ValueError("it is not a JSON object") from None


def _text(value: Any) -> str:
    text = convert(value, str)
    text.encode()  # raises for a lone surrogate
    return text


def _keys(value: Any) -> tuple[int, ...]:
    return tuple([_numbers(key, 1)[0] for key in convert(value, list)])


def _numbers(value: str, count: int) -> tuple[int, ...]:
    octets = bytes.fromhex(value)
    if octets.hex() != value:  # it has spaces, or upper case
        raise ValueError
    return _NUMBERS[count].unpack(octets)


def _octets(value: Any) -> bytes:
    return a2b_base64(_text(value), strict_mode=True)


def _hex(*numbers: int) -> str:
    return _NUMBERS[len(numbers)].pack(*numbers).hex()


def _base64(octets: bytes) -> str:
    return b2a_base64(octets, newline=False).decode("ascii")


#: What each field is read by, and what that allows.
Fields = dict[str, tuple[Callable[[Any], Any], str]]
#: Those of a page that are one number.
KEYS = "simhash", "scope", "digest", "markup"
#: Those of a page.
FIELDS: Fields = {
    "page_id": (_text, "text"),
    "url": (lambda value: storable_url(convert(value, str)), "text"),
    **dict.fromkeys(KEYS, (lambda value: _numbers(value, 1)[0], "16 hex digits")),
    "bands": (_keys, "a list of 16 hex digits each"),
    "sketch": (_octets, "base64"),
    "filed": (lambda value: convert(value, int), "seconds since 1970"),
    "run": (lambda value: value if _numbers(value, 2) else "", "32 hex digits"),
    "called": (lambda value: Called._make(_numbers(value, 2)), "32 hex digits"),
    "rare": (lambda value: _numbers(value, RARE), f"{16 * RARE} hex digits"),
}
#: Those of a host.
HOST_FIELDS: Fields = {
    "host": (_text, "text"),
    "chrome": (lambda value: unpacked(_octets(value)), "a compressed table in base64"),
}
