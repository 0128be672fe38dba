"""The HTML file of a report, which needs nothing else: how it is put together, and written.

The file holds its data as JSON, its style sheet and its script.  Its Content-Security-Policy allows the style
sheet and the script by their hashes, and nothing from anywhere else.  The script inserts every text as text.
"""

import base64
import hashlib
import json
import os
import stat
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from importlib.resources import files
from pathlib import Path
from string import Template

from dedup.errors import SettingsError

HOME = "dedup.report"
#: A file in which this stands is a report, and may be replaced by another.
MARK = '<meta name="generator" content="scrapy duplicates">'


def assembled(
    page: str, styles: Iterable[str], scripts: Iterable[str], data: object, package: str = HOME
) -> str:
    """Returns the text of a file, in ASCII, made from the names of its templates and from its data.

    The template of a page begins behind what all have as their head.
    Templates that this package lacks are those of ``package``.
    """
    own, theirs = (files(each).joinpath("templates") for each in (HOME, package))

    def joined(*names: str) -> str:
        found = (own / name if (own / name).is_file() else theirs / name for name in names)
        return "\n".join(template.read_text("utf-8") for template in found)

    style, script = joined(*styles), joined(*scripts)
    html = joined("head.html") + joined(page)
    return Template(html).substitute(
        mark=MARK,
        style=style,
        script=script,
        style_hash=_sha256(style),
        script_hash=_sha256(script),
        data=_embedded(data),
    )


def _sha256(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _embedded(data: object) -> str:
    """Data as JSON in which nothing ends a script element or begins a comment.

    >>> _embedded("</script><!--")
    '"\\\\u003c/script\\\\u003e\\\\u003c!--"'
    """
    text = json.dumps(data, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def check_target(path: Path) -> None:
    """Raises `SettingsError` if a report can't be written to a path, or would replace a file that is no report."""
    if not path.parent.is_dir():
        raise _unwritten(path, f"there is no folder {str(path.parent)!r}; make it first")
    try:
        with path.open("rb") as file:
            start = file.read(1_024)
    except FileNotFoundError:
        return
    except (OSError, ValueError) as error:
        raise _unwritten(path, error) from None
    if MARK.encode() not in start:
        raise SettingsError(
            f"{str(path)!r} can't be replaced: it is not a report; name another file, or remove it"
        )


def write_report(path: Path, text: str) -> None:
    """Writes a report: the file is replaced as a whole, or not at all.  Raises `SettingsError`."""
    check_target(path)
    temporary = None
    try:
        handle, temporary = tempfile.mkstemp(prefix=f".{path.name[:99]}-", dir=path.parent)
        with open(handle, "w", encoding="ascii") as file:
            file.write(text)
        os.chmod(temporary, _mode(path))
        os.replace(temporary, path)
    except (OSError, ValueError) as error:
        if temporary is not None:
            with suppress(OSError):
                os.unlink(temporary)
        raise _unwritten(path, error) from None


def _mode(path: Path) -> int:
    """Returns the mode of the file that a report replaces, or that of any new file."""
    with suppress(FileNotFoundError):
        return stat.S_IMODE(path.stat().st_mode)
    umask = os.umask(0o077)
    os.umask(umask)
    return 0o666 & ~umask


def _unwritten(path: Path, why: Exception | str) -> SettingsError:
    return SettingsError(f"{str(path)!r} can't be written: {getattr(why, 'strerror', None) or why}")
