"""Digests of values that a program has made: equal for equal values, in every process, and in bounded time."""

import enum
import struct
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from hashlib import blake2b
from pathlib import PurePath
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any
from uuid import UUID

from scrapy import Spider

#: How deep values may lie in each other, how many there may be (15 us each at most), and how many bytes their texts.
MAX_DEPTH, MAX_VALUES, MAX_BYTES = 50, 2_000, 1 << 20


class _OpaqueError(Exception):
    """A value can't be looked through, or not in the time that there is."""


def digest(value: Any) -> int | None:
    """Returns a number of 64 bits that equal values of the same types share; None if they can't be looked through.

    Of dicts and sets, the order does not count.  Items of every kind that `itemadapter` knows are looked through.

    >>> digest({"a": [1, "b"], "c": None}) == digest({"c": None, "a": [1, "b"]})
    True
    >>> digest([1]) == digest(["1"]), digest(object())
    (False, None)
    """
    try:
        return int.from_bytes(_Reader().read(value)[:8], "big")
    except Exception:  # noqa: BLE001 (a value may have any methods)
        return None


class _Reader:
    """Reads one value."""

    def __init__(self) -> None:
        self._values, self._bytes, self._depth = MAX_VALUES, MAX_BYTES, MAX_DEPTH

    def read(self, value: Any) -> bytes:
        """Returns the digest of a value.  Raises anything if it has none."""
        self._values -= 1
        if not self._values or not self._depth:
            raise _OpaqueError
        self._depth -= 1
        kind = type(value)
        if value is None or kind is bool:
            found = self._hash("constant", repr(value).encode())
        elif isinstance(value, str):  # or a kind of text such as lxml's
            found = self._hash("text", str.encode(value, "utf-8", "surrogatepass"))
        elif (write := _PLAIN.get(kind)) is not None:
            found = self._hash(kind.__name__, write(value))
        elif (parts := _PARTS.get(kind)) is not None:
            found = self._hash(kind.__name__, *parts(self, value))
        else:
            found = self._read_other(kind, value)
        self._depth += 1
        return found

    def _read_other(self, kind: type, value: Any) -> bytes:
        name = _name(kind)
        if isinstance(value, enum.Enum):
            return self._hash("enum", name, value.name)
        if isinstance(value, PurePath):
            return self._hash("path", name, str(value).encode("utf-8", "surrogatepass"))
        if isinstance(value, type | FunctionType | BuiltinFunctionType):
            return self._hash("global", _name(value))
        if isinstance(value, MethodType) and isinstance(value.__self__, Spider):
            return self._hash("method", _name(value.__func__))
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return self._hash("tuple", name, *map(self.read, value))
        from itemadapter import ItemAdapter  # requests seldom carry items

        if ItemAdapter.is_item(value) and not isinstance(value, dict):
            return self._hash("item", name, *self._pairs(dict(ItemAdapter(value))))
        raise _OpaqueError

    def _pairs(self, value: dict[Any, Any]) -> Iterable[bytes]:
        return sorted(self.read(key) + self.read(one) for key, one in value.items())

    def _hash(self, *parts: str | bytes) -> bytes:
        found = blake2b(digest_size=16)
        for part in parts:
            octets = part.encode() if isinstance(part, str) else part
            self._bytes -= len(octets)
            if self._bytes < 0:
                raise _OpaqueError
            found.update(len(octets).to_bytes(8, "big"))
            found.update(octets)
        return found.digest()


def _name(value: Any) -> str:
    """Returns the name by which every process finds a class or a function.  Raises if there is none."""
    if "<" in value.__qualname__:  # made in a function: others of that name may be another
        raise _OpaqueError
    return f"{value.__module__}.{value.__qualname__}"


def _shown(value: Any) -> bytes:
    return repr(value).encode()


#: How values of types without parts are written.
_PLAIN: dict[type, Callable[[Any], bytes]] = {
    int: lambda value: value.to_bytes(value.bit_length() // 8 + 1, "big", signed=True),
    float: lambda value: struct.pack(">d", value),
    bytes: bytes,
    bytearray: bytes,
    **dict.fromkeys((complex, range, date, datetime, time, timedelta, Decimal, Fraction, UUID), _shown),
}
#: The digests of the parts of others.
_PARTS: dict[type, Callable[[_Reader, Any], Iterable[bytes]]] = {
    **dict.fromkeys((list, tuple, deque), lambda reader, value: map(reader.read, value)),
    **dict.fromkeys((set, frozenset), lambda reader, value: sorted(map(reader.read, value))),
    **dict.fromkeys((dict, OrderedDict, defaultdict, Counter), lambda reader, value: reader._pairs(value)),
}
