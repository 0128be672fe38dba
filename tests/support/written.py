"""What is written of settings beside `dedup.settings`, made from there: ``make settings`` writes it anew.

Of each section of docs/reference.md it writes the facts at its beginning; what follows them is written by hand.
"""

import re
import textwrap
from collections.abc import Callable
from inspect import formatannotation
from typing import get_type_hints

from dedup.settings import PROFILES, SETTINGS, DetectorSettings, IndexSettings
from dedup.values import Choice, Group, Setting
from tests.support import ROOT

#: A section of the reference: its setting, the facts, and what was written by hand.
_SECTION = re.compile(
    r"^### `DEDUP_(\w+)`\n((?:(?!^#).)*?^- Default: .*?\n)?\n*((?:^- .*?)?)\n*(?=^##)",
    re.MULTILINE | re.DOTALL,
)


def _wrap(text: str, indent: str, width: int) -> str:
    lines = textwrap.wrap(
        text, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
    return "\n".join(lines)


def _between(text: str, begin: str, end: str, made: str) -> str:
    """A text with what is between two lines of it made anew."""
    before, line, rest = text.partition(begin)
    _, _, after = rest.partition(end)
    return f"{before}{line}{made}{end}{after}"


def _shown(value: object) -> str:
    """A value as one would write it in a settings file.

    >>> _shown("drop"), _shown(1_000_000), _shown(0.75)
    ('"drop"', '1_000_000', '0.75')
    """
    if type(value) is int:
        return f"{value:_}"
    return f'"{value}"' if isinstance(value, str) else repr(value)


def project(text: str) -> str:
    """crawler/settings.py: every setting with its default."""
    made = []
    for each in SETTINGS.values():
        allowed = "" if isinstance(each.kind, Choice) else f"  Allowed: {each.kind}."
        comment = _wrap(f"# {each.text}{allowed}", "# ", 110)
        is_in_profile = any(each.name in profile for profile in PROFILES.values())
        off = "# " if is_in_profile else ""  # or no profile would have a say
        made.append(f"{comment}\n{off}DEDUP_{each.name.upper()} = {_shown(each.default)}\n")
    return _between(
        text, "; the values shown are the defaults\n", "\n# --- From the environment", "".join(made)
    )


def keywords(text: str) -> str:
    """dedup/batch/pages.py: the keywords of `dedup.open`."""
    groups: tuple[type[Group], ...] = (DetectorSettings, IndexSettings)
    hints = {name: hint for group in groups for name, hint in get_type_hints(group).items()}
    made = "\n".join(f"    {name}: {formatannotation(hint)}" for name, hint in hints.items())
    return _between(text, '    # Written by "make settings":\n', "\n\n", made)


def reference(text: str) -> str:
    """docs/reference.md: the effect, the default and what is allowed, below the heading of each setting."""
    return _SECTION.sub(lambda found: f"{_facts(SETTINGS[found[1].lower()])}{found[3]}\n\n", text)


def sections(text: str) -> dict[str, str]:
    """What is written by hand of each setting, by its name."""
    return {name.lower(): hand for name, _, hand in _SECTION.findall(text)}


def _facts(setting: Setting) -> str:
    allowed = re.sub(r"'.*?'|True|False|%\(\w+\)s", r"`\g<0>`", str(setting.kind)).replace("'", '"')
    lines = [
        f"### `DEDUP_{setting.name.upper()}`\n",
        _wrap(setting.text, "", 119) + "\n",
        _wrap(f"- Default: `{_shown(setting.default)}`. Allowed: {allowed}", "  ", 119) + "\n",
    ]
    return "\n".join(lines)


#: The files, and what makes each from what it is.
WRITTEN: dict[str, Callable[[str], str]] = {
    "crawler/settings.py": project,
    "dedup/batch/pages.py": keywords,
    "docs/reference.md": reference,
}


if __name__ == "__main__":
    for name, write in WRITTEN.items():
        path = ROOT / name
        path.write_text(write(path.read_text()))
