"""`scrapy dedup` of a million short texts, and of 200,000 pages: time, memory as it grows, and what is found.

    python -m benchmarks.volume make texts 1000000 texts.jsonl
    python -m benchmarks.volume make pages 200000 pages.jsonl [--largest .5]
    python -m benchmarks.volume clean pages.jsonl [--engine spark] [--workers 1] [--seconds 800]
    python -m benchmarks.volume parse pages.jsonl

Words come as often as in a language: the nth most frequent one in 1 / (n + 2.7) of the places.  One row in five is a copy of
an earlier one, some texts being copied far more often than others; the field ``kind`` says what was done to it, and
rows of one ``content`` are copies of each other.  Neither is read by the command.

- texts of 30 to 80 words: copies are equal, have one other word, or have some more words at the end; of a "rewritten" one
  half of the words are other ones, so it is no copy;
- pages of 2,000 hosts, the largest of which has an eighth of them, or the share that is given, each with a menu and a footer of its own: copies have another
  session id in their links and another advert, or stand on another host amid its menu; a "sibling" has another text
  under the same heading, so it is no copy.

The same seed makes the same file.  ``clean`` tells the seconds of the processor and the memory of all processes at each
eighth of a part; ``parse`` what it takes to parse the same rows, alone.  If it is stopped, as by Ctrl-C or after so many
``--seconds``, the same call goes on from there, and its seconds count only what it has done itself.
"""

import argparse
import hashlib
import json
import os
import random
import re
import shutil
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

#: Different words of the language, and pages for each host on average.
WORDS, EACH = 100_000, 100
LETTERS = "aeioubcdfghklmnprstvwz"


class Language:
    """Draws words by their frequency."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self._numbers = np.random.default_rng(seed)
        self._below = np.cumsum(1 / (np.arange(WORDS) + 3.7))
        made = dict.fromkeys(
            "".join(self.random.choices(LETTERS, k=2 + int(n ** (1 / 5)))) for n in range(2 * WORDS)
        )
        self._words = np.array([*made][:WORDS], object)
        self._left: list[str] = []

    def words(self, count: int) -> list[str]:
        """So many words."""
        while len(self._left) < count:
            drawn = self._numbers.random(1 << 16) * self._below[-1]
            self._left += self._words[self._below.searchsorted(drawn)].tolist()
        taken, self._left[-count:] = self._left[-count:], []
        return taken


def texts(count: int, seed: int, _: float = 0) -> Iterator[dict[str, Any]]:
    """Rows of short texts."""
    language, made = Language(seed), list[tuple[int, list[str]]]()
    chance = language.random
    for number in range(count):
        words, kind, content = language.words(chance.randint(30, 80)), "own", number
        if made and chance.random() < 0.25:
            kind = chance.choice(("equal", "one_word", "more_words", "more_words", "rewritten"))
            of, first = made[int(len(made) * chance.random() ** 4)]  # those first are copied most
            content = number if kind == "rewritten" else of
            if kind == "one_word":
                place = chance.randrange(len(first))
                words = [*first[:place], words[0], *first[place + 1 :]]
            else:
                more = {"equal": 0, "more_words": 3, "rewritten": len(first) // 2}[kind]
                words = (first[: len(first) // 2] if kind == "rewritten" else first) + words[:more]
        if kind == "own":
            made.append((number, words))
        yield {"id": number, "text": " ".join(words), "kind": kind, "content": content}


def pages(count: int, seed: int, largest: float) -> Iterator[dict[str, Any]]:
    """Rows of pages of many hosts.  ``largest`` is the share of the largest; if it is 0, its size follows from its rank."""
    language, hosts = Language(seed), list[dict[str, str]]()
    chance = language.random
    for number in range(max(2, count // EACH)):
        names = [" ".join(language.words(chance.randint(1, 3))) for _ in range(chance.randint(15, 60))]
        links = "".join(f'<li><a href="/{n}/{{sid}}">{name}</a></li>' for n, name in enumerate(names))
        foot = " ".join(language.words(40))
        hosts.append({"name": f"host{number}.example", "menu": links, "foot": foot})
    sizes = 1 / (np.arange(len(hosts)) + 1)
    if largest:
        sizes[0] = sizes[1:].sum() * largest / (1 - largest)
    shares = np.cumsum(sizes)
    which = shares.searchsorted(np.random.default_rng(seed + 1).random(count) * shares[-1]).tolist()
    made: list[tuple[int, int, list[str]]] = []
    for number in range(count):
        host, path, kind, sid = which[number], number, "own", ""
        words = language.words(min(2000, int(chance.lognormvariate(5.5, 0.7)) + 40))
        heading = words[:6]
        if made and chance.random() < 0.25:
            kind = chance.choice(("session", "session", "mirror", "mirror", "sibling"))
            its, path, first = made[int(len(made) * chance.random() ** 2)]
            if kind == "sibling":
                heading, host, path = first[:6], its, number
            else:
                words, heading = first, first[:6]
                host = its if kind == "session" else host
                sid = f"?sid={chance.getrandbits(64):016x}" if kind == "session" else ""
        if kind == "own":
            made.append((host, path, words))
        yield {
            "url": f"http://{hosts[host]['name']}/page/{path}{sid}",
            "html": _html(hosts[host], heading, words, sid, " ".join(language.words(8))),
            "kind": kind,
            "content": path,
        }


def _html(host: dict[str, str], heading: list[str], words: list[str], sid: str, advert: str) -> str:
    text = "".join(
        f"<p class='text'>{' '.join(words[at : at + 60]).capitalize()}.</p>\n"
        for at in range(0, len(words), 60)
    )
    title = " ".join(heading)
    return (
        f"<!DOCTYPE html><html><head><title>{title} - {host['name']}</title><meta charset=utf-8>"
        f"<style>{'.text { margin: 1em }' * 40}</style><script>{'var counted = 0;' * 60}</script></head><body>"
        f"<ul class='menu'>{host['menu'].replace('{sid}', sid)}</ul><div class='advert'>{advert}</div>"
        f"<h1>{title}</h1>\n{text}<div class='foot'>{host['foot']}</div></body></html>"
    )


def _family() -> list[int]:
    """This process and all below it."""
    found, of = list[int](), dict[int, list[int]]()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            of.setdefault(int(stat.read_text().rpartition(")")[2].split()[1]), []).append(
                int(stat.parent.name)
            )
        except OSError:  # it has just ended
            continue
    found.append(os.getpid())
    for each in found:
        found += of.get(each, [])
    return found


def memory() -> float:
    """MB of this process and all below it, what they share counted once."""
    total = 0
    for each in _family():
        try:
            lines = Path(f"/proc/{each}/smaps_rollup").read_text()
        except OSError:
            continue
        total += int(lines.partition("\nPss:")[2].split()[0])
    return total / 1024


def used() -> float:
    """Seconds of the processor, of this process and all below it, those that have ended too."""
    ticks = 0
    for each in _family():
        try:
            stat = Path(f"/proc/{each}/stat").read_text()
        except OSError:
            continue
        ticks += sum(map(int, stat.rpartition(")")[2].split()[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


class Sampled(threading.Thread):
    """Sums up what all processes use while it runs, each by itself: the workers of Spark end without being waited for."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.seconds = dict[int, float]()  #: of the processor, by process
        self.most = 0.0  #: MB at once
        self.start()

    def run(self) -> None:
        """Looks every half second."""
        while True:
            for each in _family():
                with suppress(OSError):
                    stat = Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
                    self.seconds[each] = sum(map(int, stat[11:13])) / os.sysconf("SC_CLK_TCK")
            self.most = max(self.most, memory())
            time.sleep(0.5)


@contextmanager
def told(what: str, total: int) -> Iterator[Callable[[int, int], None]]:
    """Tells time and memory at each eighth of a part."""
    began, cpu, next_at = time.perf_counter(), used(), 1

    def advance(done: int, pages: int) -> None:
        nonlocal next_at
        if done * 8 >= total * next_at:
            next_at = done * 8 // max(1, total) + 1
            print(
                f"  {what:8} {done / max(1, total):4.0%} {time.perf_counter() - began:6.0f} s {used() - cpu:6.0f} s of the"
                f" processor {memory():5.0f} MB",
                flush=True,
            )

    yield advance
    print(f"{what}: {time.perf_counter() - began:.0f} s, {used() - cpu:.0f} s of the processor", flush=True)


def clean(path: Path, engine: str, workers: int) -> None:
    """The whole command, and what it found of each kind."""
    from dedup.contrib.archives import Cleaning

    folder = Path(f"{path}.{engine}")
    folder.mkdir(exist_ok=True)
    kept = folder / "kept.jsonl"
    cleaning = Cleaning([str(path)], str(kept), str(folder / "drops.jsonl"), workers=workers)
    if engine == "spark":
        from dedup.contrib.spark.cleaning import Spark

        cleaning.engine = Spark("local[2]")
    cpu, began, sampled = used(), time.perf_counter(), Sampled() if engine == "spark" else None
    try:
        result = cleaning.run(told)
    except KeyboardInterrupt:
        raise SystemExit(
            f"stopped after {time.perf_counter() - began:.0f} s, {used() - cpu:.0f} s of the processor"
        ) from None
    print(f"all: {time.perf_counter() - began:.0f} s, {used() - cpu:.0f} s of the processor")
    if sampled:
        print(
            f"sampled: {sum(sampled.seconds.values()):.0f} s of the processor, {sampled.most:.0f} MB at most"
        )
    print({name: value for name, value in result.stats.items() if isinstance(value, int)})
    every, left = _rows(path), _rows(kept)
    for each in (kept, folder / "drops.jsonl"):
        print(f"{each.name}: {_digest(each)}")
    shutil.rmtree(folder)
    print(f"{len({content for _, content in every} - {content for _, content in left})} contents are lost")
    some = Counter(kind for kind, _ in left)
    print(f"{'':12} {'rows':>9} {'dropped':>9}")
    for kind, count in sorted(Counter(kind for kind, _ in every).items()):
        print(f"{kind:12} {count:9,} {count - some[kind]:9,} {1 - some[kind] / count:7.2%}")


def _digest(path: Path) -> str:
    """A digest of the lines of a file, without the times at which they were written."""
    found = hashlib.sha256()
    with path.open("rb") as file:
        for line in file:
            found.update(re.sub(rb'"time": "[^"]*", ', b"", line))
    return found.hexdigest()[:16]


def _rows(path: Path) -> list[tuple[str, int]]:
    """The kind and the content of each row."""
    with path.open() as file:
        return [(row["kind"], row["content"]) for row in map(json.loads, file)]


def parse(path: Path) -> None:
    """Seconds of the processor to read the rows, and to parse their HTML."""
    from lxml import html

    cpu = used()
    with path.open("rb") as file:
        for line in file:
            row = json.loads(line)
            if "html" in row:
                html.document_fromstring(row["html"])
    print(f"parse: {used() - cpu:.0f} s of the processor")


def main() -> None:
    """Does what is asked."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    made = verbs.add_parser("make")
    made.add_argument("what", choices=("texts", "pages"))
    made.add_argument("count", type=int)
    made.add_argument("file", type=Path)
    made.add_argument("--seed", type=int, default=1)
    made.add_argument("--largest", type=float, default=0, help="the share of the largest host")
    for verb in ("clean", "parse"):
        verbs.add_parser(verb).add_argument("file", type=Path)
    cleaned = verbs.choices["clean"]
    cleaned.add_argument("--engine", choices=("local", "spark"), default="local")
    cleaned.add_argument("--workers", type=int, default=0)
    cleaned.add_argument("--seconds", type=int, default=0, help="it stops itself then")
    options = parser.parse_args()
    if options.verb == "make":
        rows = {"texts": texts, "pages": pages}[options.what](options.count, options.seed, options.largest)
        with options.file.open("w") as file:
            for row in rows:
                file.write(json.dumps(row) + "\n")
    elif options.verb == "parse":
        parse(options.file)
    else:
        signal.signal(signal.SIGALRM, signal.default_int_handler)
        signal.alarm(options.seconds)
        clean(options.file, options.engine, options.workers)


if __name__ == "__main__":
    main()
