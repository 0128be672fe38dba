"""What is written of settings beside `dedup.settings`, and of measurements beside docs/figures: ``make settings`` writes it anew.

Of each section of docs/reference.md it writes the facts at its beginning; what follows them is written by hand.  Of a table
with figures it writes what is below its headings (see `benchmarks.figures`).
"""

import json
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

#: A table of figures: the file and the names of what it shows, all up to its second line, and the rest.
_TABLE = re.compile(r"^(<!-- (\S+\.json): (.*) -->\n\n(?:\|.*\n){2})((?:\|.*\n)*)", re.MULTILINE)


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


def tables(text: str) -> str:
    """A page of the documents: the rows of its tables of figures."""

    def made(found: re.Match[str]) -> str:
        kept = json.loads((ROOT / "docs" / "figures" / found[2]).read_text())
        names = found[3].split(", ")
        rows = [row for measured in kept.values() for row in measured["rows"]]
        return found[1] + "".join(f"| {' | '.join(_figure(row[name]) for name in names)} |\n" for row in rows)

    return _TABLE.sub(made, text)


def _figure(value: str | float) -> str:
    """A figure as one would write it in a table.

    >>> _figure(1234567), _figure(0.98), _figure(12.0), _figure("shuffled")
    ('1,234,567', '.98', '12', 'shuffled')
    """
    if isinstance(value, str):
        return value
    return (f"{value:,g}" if isinstance(value, float) else f"{value:,}").removeprefix("0") or "0"


#: The documents that have tables of figures.
MEASURED = (
    "docs/contrib/archives.md",
    "docs/contrib/changes.md",
    "docs/deaths.md",
    "docs/links.md",
    "docs/measured.md",
)
#: The files, and what makes each from what it is.
WRITTEN: dict[str, Callable[[str], str]] = {
    "crawler/settings.py": project,
    "dedup/batch/pages.py": keywords,
    "docs/reference.md": reference,
    **dict.fromkeys(MEASURED, tables),
}


if __name__ == "__main__":
    for name, write in WRITTEN.items():
        path = ROOT / name
        path.write_text(write(path.read_text()))
