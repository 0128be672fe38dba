"""The files that a cleaning makes.  They appear under their names once they are complete, and nothing is overwritten."""

import os
from pathlib import Path
from typing import NamedTuple

from dedup.contrib.archives.containers import check_made
from dedup.contrib.archives.inputs import INPUT
from dedup.errors import SettingsError
from dedup.printing import inert

#: How the name of an output ends, by which its format is known; the first three may be followed by .gz.
FORMATS = (".jsonl", ".ndjson", ".warc", ".wacz", ".parquet", ".csv")


def form(name: str) -> str:
    """Returns the end of a name that says its format; "" if none does.

    >>> form("a.warc.gz"), form("a.csv.gz"), form("-")
    ('.warc', '', '.jsonl')
    """
    if name == INPUT:
        return FORMATS[0]
    plain = name.removesuffix(".gz")
    allowed = FORMATS if plain == name else FORMATS[:3]
    return next(filter(plain.endswith, allowed), "")


class Targets(NamedTuple):
    """The paths of what is made; "" is none."""

    output: str  #: of what is kept; "-" is the standard output
    duplicates: str  #: of the drop log
    cdxj: str  #: of an index of the WARC file that is written

    @property
    def folder(self) -> Path | None:
        """The folder in which they are made; None if no file is written."""
        named = self.output if self.output != INPUT else ""
        return Path(f"{named or self.duplicates}.part") if named or self.duplicates else None

    def check(self) -> None:
        """Raises `SettingsError` if one of them is there, or can't be made."""
        if self.output not in ("", INPUT) and _is_same(self.output, self.duplicates):
            raise SettingsError(
                f"-o and --duplicates are both '{inert(self.output)}'; give each a file of its own"
            )
        if self.output and not form(self.output):
            raise SettingsError(
                f"-o is '{inert(self.output)}', whose format is not known; allowed: a name that ends with "
                f"{', '.join(FORMATS)} (.gz may follow the first three), or {INPUT}"
            )
        if self.cdxj and form(self.output) not in (".warc", ".wacz"):
            raise SettingsError(
                f"--cdxj is '{inert(self.cdxj)}', an index of the WARC file that is written, but -o names no WARC file"
            )
        check_made(self.cdxj, self.output if form(self.output) in (".wacz", ".parquet") else "")
        for _, option, name in self._made():
            _check_free(option, name)

    def publish(self, folder: Path) -> None:
        """Moves what was made in a folder to where it belongs.  Doing it twice is harmless."""
        for part, option, name in self._made():
            if (folder / part).exists():
                _check_free(option, name)
                os.replace(folder / part, name)

    def _made(self) -> list[tuple[str, str, str]]:
        """Returns what each file is called in the folder, the option that names it, and its path."""
        named = self.output not in ("", INPUT)
        made = [("kept", "-o", self.output), ("damaged", "-o", f"{self.output}.damaged")] if named else []
        others = ("index", "--cdxj", self.cdxj), ("duplicates", "--duplicates", self.duplicates)
        return made + [each for each in others if each[2] not in ("", INPUT)]


def check_own(folder: Path) -> None:
    """Raises `SettingsError` unless the folder is new or holds only what a cleaning has left: it is deleted at the end."""
    if os.path.lexists(folder) and not (folder.is_dir() and not folder.is_symlink()):
        raise SettingsError(
            f"{folder}, where this would be done, is not a folder; name another output, or move it"
        )
    names = set(os.listdir(folder)) if folder.exists() else set()
    if "journal" not in names and names - {"lock"}:
        raise SettingsError(
            f"the folder {folder}, where this would be done, has other files in it; name another output, or move it"
        )


def _check_free(option: str, name: str) -> None:
    if os.path.lexists(name):
        raise SettingsError(f"{option} is '{inert(name)}', which exists; nothing is overwritten")


def _is_same(one: str, other: str) -> bool:
    """Returns whether two paths name the same file.  The file need not exist yet."""
    return bool(other) and os.path.realpath(one) == os.path.realpath(other)
