"""What a crawl keeps, and where: the namespace of its index, and the files of a project."""

import hashlib
import re
from pathlib import Path
from urllib.parse import quote

from scrapy.exceptions import NotConfigured
from scrapy.settings import BaseSettings
from scrapy.utils.conf import closest_scrapy_cfg
from scrapy.utils.project import data_path

#: What a name keeps as a part of a namespace.
_SAFE = "".join(map(chr, range(32, 127))).translate(str.maketrans("", "", "{}%/"))
#: How the names of histories end.
HISTORY = ".history"
#: How the names of index files, and of what lies beside them, end.
_BESIDE = re.compile(r"\.sqlite(-wal|-shm|-journal|\.lock|\.new)?$")


def default_namespace(bot_name: str | None, spider: str) -> str:
    """Returns the namespace of a spider of a project: no other spider, and no other project, has it.

    >>> default_namespace("shop", "books"), default_namespace("shop", "{all}")
    ('shop/books', 'shop/%7Ball%7D')
    """
    names = [quote(name, _SAFE, errors="surrogatepass") for name in (bot_name or "scrapybot", spider) if name]
    return "/".join(names)


def file_of(namespace: str) -> str:
    """Returns the path of a namespace's default index, below the folder of all: no other namespace has it.

    On file systems that do not tell capitals from small letters, too, and for names that no file can have:

    >>> file_of("shop/books.example"), file_of("shop/Books")
    ('shop/books.example.sqlite', 'shop/books~cb5e2e5f01809020.sqlite')
    """
    *folders, name = map(_file_name, namespace.split("/"))
    return "/".join((*folders, f"{name}.sqlite"))


def _file_name(part: str) -> str:
    if re.fullmatch(r"[a-z0-9_][a-z0-9_.-]{0,99}(?<!\.)", part) and not _BESIDE.search(part):
        return part
    digest = hashlib.blake2b(part.encode(errors="surrogatepass"), digest_size=8).hexdigest()
    return re.sub("[^a-z0-9_-]", "_", part.lower())[:100] + f"~{digest}"


def history_of(address: str, namespace: str) -> Path:
    """Returns the history of a site: beside the file of its index, or in the project if that is not in a file.

    What was met with one index is not left out of a crawl with another, so each has its own; a password may change.

    >>> history_of("file:shop.sqlite", "").name, history_of("redis://:secret@redis/0", "shop").name
    ('shop.sqlite.history', 'shop.066a6ff3.history')
    """
    scheme, _, path = address.partition(":")
    if scheme == "file":
        return Path(f"{Path(path).expanduser()}{HISTORY}")
    where = re.sub("//[^/]*@", "//", address)
    digest = hashlib.blake2b(where.encode(errors="surrogatepass"), digest_size=4).hexdigest()
    return Path(index_folder(), file_of(namespace)).with_suffix(f".{digest}{HISTORY}")


def histories(settings: BaseSettings) -> list[Path]:
    """Returns the histories that the crawls of a project have left, those of its default indexes and of the one that it names."""
    named = str(settings.get("DEDUP_INDEX") or "")
    found = [history_of(f"file:{in_project(named[5:])}", "")] if named.startswith("file:") else []
    return [*filter(Path.is_file, found), *sorted(Path(index_folder()).glob(f"**/*{HISTORY}"))]


def in_project(path: str) -> str:
    """Returns a path as the whole project means it: a relative one is below the folder of scrapy.cfg, if there is one."""
    found = closest_scrapy_cfg()
    root = Path(found).parent if found else Path()
    if root.resolve() == Path.cwd() or Path(path).expanduser().is_absolute():
        return path
    return str(root / path)


def index_folder() -> str:
    """Returns where the project, or without one this folder, keeps its indexes."""
    try:
        return str(data_path("dedup"))
    except NotConfigured:
        return ".scrapy/dedup"
    except OSError:  # Scrapy makes that folder for whoever asks where it is; with Redis it need not be
        return in_project(".scrapy/dedup")
