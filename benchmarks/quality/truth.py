"""Collections of pages with the truth of them: which of them resemble each other."""

import gzip
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

from dedup.errors import SettingsError


class Collection(NamedTuple):
    """Pages of a site, by path below a folder, and which of them resemble each other."""

    paths: list[str]
    truth: dict[int, dict[int, float]]  #: per page, resemblance of others; of at least .6


def read_html(path: str, root: Path) -> tuple[bytes, str]:
    """The HTML and the URL of a page that is given by its path below ``root``.

    Raises `SettingsError` if it is missing.
    """
    if not (root / path).is_file():
        raise SettingsError(f"{root / path} is missing; --root is the folder that the paths start from")
    return (root / path).read_bytes(), f"http://localhost/{path}"


def read_collection(pairs: Path) -> Collection:
    """A collection from NAME.pairs.tsv.gz (a, b, resemblance; with a heading) and NAME.docs.txt.gz (a path a line)."""
    docs = pairs.with_name(pairs.name.removesuffix(".pairs.tsv.gz") + ".docs.txt.gz")
    try:
        with gzip.open(docs, "rt", encoding="utf-8") as lines:
            paths = [line.rstrip("\n") for line in lines if line.strip()]
        position = {path: number for number, path in enumerate(paths)}
        truth: dict[int, dict[int, float]] = defaultdict(dict)
        with gzip.open(pairs, "rt", encoding="utf-8") as lines:
            next(lines)
            for line in lines:
                a, b, resemblance = line.rstrip("\n").split("\t")
                one, other = position[a], position[b]
                truth[one][other] = truth[other][one] = float(resemblance)
    except (OSError, EOFError, UnicodeDecodeError, ValueError, KeyError, StopIteration) as error:
        raise SettingsError(f"{pairs} and {docs} can't be read as a collection: {error!r}") from None
    return Collection(paths, dict(truth))
