"""Character references -> characters, as the HTML standard resolves them (WHATWG, 13.2.5.72)."""

import re
import sys
from functools import partial
from html.entities import html5

_REFERENCE = re.compile(r"&(?:#[xX]([0-9A-Fa-f]++);?|#([0-9]++);?|([A-Za-z][A-Za-z0-9]{0,31};?))")
#: Characters of the longest name of a reference that needs no semicolon.
_LONGEST = max(len(name) for name in html5 if name[-1] != ";")
#: Which characters some numbers mean, as in Windows.
_WINDOWS = {
    code: bytes([code]).decode("cp1252")
    for code in range(0x80, 0xA0)
    if code not in {0x81, 0x8D, 0x8F, 0x90, 0x9D}
}


def resolve(text: str, *, in_value: bool = False) -> str:
    """Returns a text with characters for its references; in the value of an attribute, fewer are without a semicolon.

    >>> resolve("&ltb &copy=2"), resolve("&ltb &copy=2", in_value=True)
    ('<b ©=2', '&ltb &copy=2')
    """
    if "&" not in text:
        return text
    return _REFERENCE.sub(_resolved_in_value if in_value else _resolved, text)


def _resolved(reference: re.Match[str], *, in_value: bool = False) -> str:
    hexadecimal, decimal, name = reference.groups()
    if not name:
        return _character(hexadecimal or decimal, 16 if hexadecimal else 10)
    for size in (len(name), *range(min(len(name) - 1, _LONGEST), 1, -1)):
        if characters := html5.get(name[:size]):
            after = name[size : size + 1] or reference.string[reference.end() : reference.end() + 1]
            if in_value and name[size - 1] != ";" and (after == "=" or (after.isascii() and after.isalnum())):
                break
            return characters + name[size:]
    return reference[0]


_resolved_in_value = partial(_resolved, in_value=True)


def _character(digits: str, base: int) -> str:
    """Returns the character that has a number."""
    digits = digits.lstrip("0")
    code = int(digits, base) if 0 < len(digits) < 8 else 0
    if code == 0 or code > sys.maxunicode or 0xD800 <= code < 0xE000:
        return "\ufffd"
    return _WINDOWS.get(code) or chr(code)
