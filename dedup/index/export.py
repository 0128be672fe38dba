"""An index as JSON Lines: a header with the parameters, then an object per host, then one per page.

What any store gives out, any store of the same parameters takes; the table plan may be another.
The hosts come first, so that an import that is interrupted leaves no table older than a page.
"""

import json
import re
import struct
from binascii import a2b_base64, a2b_hex, b2a_base64
from collections.abc import Callable, Mapping
from json.encoder import encode_basestring_ascii as _quoted
from typing import Any

from dedup.fingerprint.chrome import Chrome
from dedup.fingerprint.fingerprint import RARE, Called
from dedup.index.contract import Index
from dedup.index.entry import Entry, scope_mask, storable_url
from dedup.index.hosts import packed, unpacked
from dedup.index.parameters import FORMAT as PAGE_FORMAT
from dedup.index.parameters import check_parameters

__all__ = ["header_line", "host_line", "page_line", "read_header", "read_line"]

#: Changes whenever lines would be read differently.
FORMAT = 3
_KEY = re.compile("[0-9a-f]{16}")
_RUN = re.compile("[0-9a-f]{32}")
_CALLED = re.compile("[0-9a-f]{48}")
_RARE = re.compile(f"[0-9a-f]{{{16 * RARE}}}")
#: Text that JSON escapes nothing of, and a line of `page_line` that has no other.
_PLAIN = r"[ !#-\[\]-~]*"
_LINE = re.compile(
    (
        rf'\{{"page_id": "({_PLAIN})", "url": "({_PLAIN})", "simhash": "({_KEY.pattern})", '
        rf'"scope": "({_KEY.pattern})", "digest": "({_KEY.pattern})", '
        rf'"bands": \[((?:"{_KEY.pattern}"(?:, "{_KEY.pattern}")*)?)\], "sketch": "({_PLAIN})", '
        rf'"filed": (0|[1-9][0-9]{{0,9}}), "run": "({_RUN.pattern})", "view": "({_KEY.pattern})", '
        rf'"called": "({_CALLED.pattern})", "rare": "({_RARE.pattern})"\}}\n?'
    ).encode()
)
#: simhash, scope, digest and view of a page, what it is called, and its rare shingles.
_NUMBERS = struct.Struct(f">{7 + RARE}Q")


def _parameters(index: Index) -> dict[str, str]:
    fields = {name: value for name, value in index.parameters.texts.items() if name != "tables"}
    return fields | {"format": str(PAGE_FORMAT)}  # that of the pages, whatever the store


def header_line(index: Index) -> str:
    """The first line."""
    return json.dumps({"shingleback_index": FORMAT, "parameters": _parameters(index)})


def page_line(entry: Entry) -> str:
    """The line of a page."""
    bands = ", ".join([f'"{band:016x}"' for band in entry.bands]) if entry.bands else ""
    numbers = _NUMBERS.pack(
        entry.simhash, entry.scope, entry.digest, entry.view, *entry.called, *entry.rare
    ).hex()
    return (  # as json.dumps would write it, in a third of the time
        f'{{"page_id": {_quoted(entry.page_id)}, "url": {_quoted(entry.url)}, "simhash": "{numbers[:16]}", '
        f'"scope": "{numbers[16:32]}", "digest": "{numbers[32:48]}", "bands": [{bands}], '
        f'"sketch": "{_base64(entry.sketch)}", "filed": {entry.filed}, "run": {_quoted(entry.run)}, '
        f'"view": "{numbers[48:64]}", "called": "{numbers[64:112]}", "rare": "{numbers[112:]}"}}'
    )


def host_line(name: str, table: Chrome) -> str:
    """The line of a host."""
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
        raise ValueError(f"it is the header of an export of format {found}, and this version reads {FORMAT}")
    check_parameters(what, parameters, _parameters(index))


def read_line(line: bytes, index: Index) -> Entry | tuple[str, Chrome]:
    """The page of a line, in the scope that its URL has; or the name of a host, and its table.

    Raises ValueError: one line that says which field is wrong, and what is allowed.
    """
    entry = _plain_page(line)
    if entry is None:
        found = _object(line)
        if "host" in found:
            values = _fields(found, HOST_FIELDS)
            return values["host"], Chrome.from_bytes(values["chrome"])
        entry = Entry(**_fields(found, FIELDS))
    scope = scope_mask(index.settings.scope, entry.url)
    if scope != entry.scope:
        entry = entry._replace(scope=scope)
    if wrong := index.parameters.flaw(entry):
        raise ValueError(wrong)
    return entry


def _plain_page(line: bytes) -> Entry | None:
    """The page of a line that is just as `page_line` writes it, and has no escapes; takes half of the time."""
    found = _LINE.fullmatch(line)
    if found is None:
        return None
    page_id, url, *keys, bands, sketch, filed, run, view, called, rare = found.groups()
    try:
        octets = a2b_base64(sketch, strict_mode=True)
    except ValueError:
        return None
    simhash, scope, digest, main, *names = _NUMBERS.unpack(a2b_hex(b"".join((*keys, view, called, rare))))
    return Entry(
        page_id.decode(),
        storable_url(url.decode()),
        simhash,
        scope,
        digest,
        tuple([int(band, 16) for band in bands[1:-1].split(b'", "')]) if bands else (),
        octets,
        int(filed),
        run.decode(),
        main,
        Called._make(names[:3]),
        tuple(names[3:]),
    )


def _fields(found: Mapping[str, Any], fields: "Fields") -> dict[str, Any]:
    if missing := fields.keys() ^ found.keys():
        raise ValueError(f"a field is missing or unknown: {ascii(min(missing))[:60]}")
    values = {}
    for name, (read, allowed) in fields.items():
        try:
            values[name] = read(found[name])
        except (ValueError, TypeError):
            raise ValueError(f"{name} is {ascii(found[name])[:60]}; allowed: {allowed}") from None
    return values


def _object(line: bytes) -> dict[str, Any]:
    try:
        found = json.loads(line.decode())
        return found if type(found) is dict else {**found}
    except (ValueError, TypeError, RecursionError):
        raise ValueError("it is not a JSON object") from None


def _text(value: Any) -> str:
    if type(value) is not str:
        raise TypeError
    value.encode()  # raises for a lone surrogate
    return value


def _url(value: Any) -> str:
    if type(value) is not str:
        raise TypeError
    return storable_url(value)


def _key(value: Any) -> int:
    if not _KEY.fullmatch(value):
        raise ValueError
    return int(value, 16)


def _run(value: Any) -> str:
    if not _RUN.fullmatch(value):
        raise ValueError
    return str(value)


def _called(value: Any) -> Called:
    if not _CALLED.fullmatch(value):
        raise ValueError
    return Called(int(value[:16], 16), int(value[16:32], 16), int(value[32:], 16))


def _rare(value: Any) -> tuple[int, ...]:
    if not _RARE.fullmatch(value):
        raise ValueError
    return tuple(int(value[at : at + 16], 16) for at in range(0, 16 * RARE, 16))


def _keys(value: Any) -> tuple[int, ...]:
    if type(value) is not list:
        raise TypeError
    return tuple(map(_key, value))


def _count(value: Any) -> int:
    if type(value) is not int:
        raise TypeError
    return value


def _octets(value: Any) -> bytes:
    return a2b_base64(_text(value), strict_mode=True)


def _base64(octets: bytes) -> str:
    return b2a_base64(octets, newline=False).decode("ascii")


#: What each field is read by, and what that allows.
Fields = dict[str, tuple[Callable[[Any], Any], str]]
#: Those of a page.
FIELDS: Fields = {
    "page_id": (_text, "text"),
    "url": (_url, "text"),
    **dict.fromkeys(("simhash", "scope", "digest", "view"), (_key, "16 hex digits")),
    "bands": (_keys, "a list of 16 hex digits each"),
    "sketch": (_octets, "base64"),
    "filed": (_count, "seconds since 1970"),
    "run": (_run, "32 hex digits"),
    "called": (_called, "48 hex digits"),
    "rare": (_rare, f"{16 * RARE} hex digits"),
}
#: Those of a host.
HOST_FIELDS: Fields = {
    "host": (_text, "text"),
    "chrome": (lambda value: unpacked(_octets(value)), "a compressed table in base64"),
}
