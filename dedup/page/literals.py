"""Programs of JavaScript -> the values that are written in them: objects, lists, and strings that hold JSON or markup.

Only values that are written out as a whole are read.  What has a name, a call or an operator in it is a part of the program.

>>> program = "var shop = {name: 'Brass lamp', sizes: [1, 2.5,], /* no */ sold: !0}; draw(shop, [f()])"
>>> [value for _, _, value in read_literals(program)]
[{'name': 'Brass lamp', 'sizes': ['1', '2.5'], 'sold': True}]
>>> [value for _, _, value in read_literals(r'''x = JSON.parse("{\\"name\\": \\"Lamp\\"}"); document.write('<b>Lamp')''')]
[{'name': 'Lamp'}, '<b>Lamp']
"""

import json
import re
from collections.abc import Iterator
from typing import Any

#: What stands where a value is left out or undefined.
UNWRITTEN = object()
_STRING = r"\"(?:[^\"\\\n]|\\.)*+\"|'(?:[^'\\\n]|\\.)*+'"
#: Where a value may begin: after an assignment, among the arguments of a call, or as that of a few functions.
_START = re.compile(
    r"(?:[=(,]\s*(?=[\[{]))|(?P<text>(?:JSON\.parse|\bwrite(?:ln)?|decodeURIComponent|unescape)\(\s*)(?=[\"'])"
)
_LEXEME = re.compile(
    rf"(?P<gap>(?:[\s,]|//[^\n]*|/\*(?:[^*]|\*(?!/))*+\*/)++)|(?P<open>[\[{{])|(?P<close>[\]}}])|"
    rf"(?:(?P<string>{_STRING})|(?P<word>[A-Za-z_$][\w$]*+)|(?P<number>[-+]?(?:\d++\.?\d*+|\.\d++)(?:[eE][-+]?\d++)?+))"
    rf"(?P<key>\s*+:)?|(?P<void>!0|!1|void 0)",
    re.DOTALL,
)
_MAY_BE_JSON = re.compile(r"\{\s*[\"}]|\[\s*[\[{\"\d\]tfn-]").match
_ONE_STRING = re.compile(_STRING, re.DOTALL)
_ESCAPE = re.compile(r"\\(?:u\{?([0-9a-fA-F]{4,6})\}?|x([0-9a-fA-F]{2})|(.))", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "0": "\0", "\n": ""}
_WORDS: dict[str, Any] = {
    "true": True,
    "false": False,
    "null": None,
    "undefined": UNWRITTEN,
    "NaN": "NaN",
    "Infinity": "Infinity",
    "!0": True,
    "!1": False,
    "void 0": UNWRITTEN,
}
#: Numbers stay as they are written: reading one of many digits takes quadratic time.
JSON = json.JSONDecoder(parse_int=str, parse_float=str, parse_constant=str, strict=False)


def read_literals(text: str) -> Iterator[tuple[int, int, Any]]:
    """Yields where each value begins and ends, and what it is, as JSON has it, its numbers as they are written.

    What turns out to be no value is read in vain; once that is four times as much as there is, no more is looked for.
    """
    at, left = 0, 4 * len(text) + 1_000
    while left > 0 and (found := _START.search(text, at)):
        at = start = found.end()
        try:
            if found["text"]:
                value, at = _text(text, start)
            else:
                value, at = _value(text, start)
        except _NoValueError as error:
            left -= error.at - start + 1
            continue
        yield start, at, value


class _NoValueError(Exception):
    """There is no value."""

    def __init__(self, at: int) -> None:
        self.at = at  #: up to where it was read


def _text(text: str, start: int) -> tuple[Any, int]:
    """Returns the value that a string holds."""
    if not (found := _ONE_STRING.match(text, start)):
        raise _NoValueError(_read_in_vain(text, start))
    said = _unescaped(found[0])
    if said.lstrip()[:1] in ("{", "["):
        try:
            return JSON.decode(said), found.end()
        except (ValueError, RecursionError):
            pass
    return said, found.end()


def _value(text: str, start: int) -> tuple[Any, int]:
    """Returns the value that is written from here on."""
    spent = 0
    if _MAY_BE_JSON(text, start):
        try:
            return JSON.raw_decode(text, start)
        except json.JSONDecodeError as error:
            spent = error.pos - start + error.pos // 64  # of all that is before, it has counted the lines
        except RecursionError:
            raise _NoValueError(len(text)) from None
    at = start
    whole: list[Any] = []
    inner: list[Any] = [whole]  # the values that are open
    keys: list[str] = [""]
    while found := _LEXEME.match(text, at):
        at = found.end()
        kind = found.lastgroup
        if kind == "gap":
            continue
        if kind == "close":
            inner.pop()
            keys.pop()
        elif kind == "key":
            keys[-1] = found["word"] or found["number"] or _unescaped(found["string"])
        else:
            value: Any = {} if found[0] == "{" else [] if found[0] == "[" else _leaf(found, kind, at + spent)
            if isinstance(inner[-1], dict):
                inner[-1][keys[-1]] = value
            else:
                inner[-1].append(value)
            if kind == "open":
                inner.append(value)
                keys.append("")
        if len(inner) == 1:
            return whole[0], at
    raise _NoValueError(_read_in_vain(text, at) + spent)


def _read_in_vain(text: str, at: int) -> int:
    """Up to where a lexeme was looked for that begins here, and never ends."""
    if text.startswith("/*", at):
        return len(text)
    end = text.find("\n", at) if text[at : at + 1] in ("'", '"') else at + 1
    return end if end >= 0 else len(text)


def _leaf(found: re.Match[str], kind: str | None, at: int) -> Any:
    if kind == "string":
        return _unescaped(found[0])
    if kind == "number":
        return found[0]
    if found[0] not in _WORDS:
        raise _NoValueError(at)
    return _WORDS[found[0]]


def _unescaped(string: str) -> str:
    """Returns what a string with its quotes says."""
    return _ESCAPE.sub(_character, string[1:-1]) if "\\" in string else string[1:-1]


def _character(escape: re.Match[str]) -> str:
    code = escape[1] or escape[2]
    if code:
        return chr(int(code, 16)) if int(code, 16) <= 0x10FFFF else "\ufffd"
    return _ESCAPED.get(escape[3], escape[3])
