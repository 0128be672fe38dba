"""What a crawl loses, drops and asks for at sites whose every answer is another.

    python -m benchmarks.living [--quick] [--kinds REGEX] [--noise NAME ...] [--addresses NAME ...] [--orders N] [--again] [--figures FILE]
    python -m benchmarks.living --strangers FIRST LAST [--orders N] [--figures FILE]

Each kind of page is a site of its own (`tests.support.living`): 40 contents, of which 12 are at seven addresses each,
amid 16 articles, in several orders one by one, and in the first of them eight at once.  Over all kinds, a line tells
  - how many contents are lost in all crawls, and with which rule and example, by kind;
  - the share of copies that is dropped, by their form.  A page is a copy if its content was met before it, and a print copy
    if that was in the other template only, but for the first three of a site ("own": at the content's own address);
  - requests beside one for each page, in a hundred pages: the median of the kinds and the worst;
  - by how much the numbers of kept pages of several orders differ, in percent of the least: likewise;
  - the share of pages that are judged rightly in some orders only, and only one by one or only at once;
  - ms of the processor for each page, the making of its answers left out, and drops by rule.

With ``--again``, all that is of the second of two crawls with one index in a file, the first in an order of its own.
With ``--strangers``, each kind is a site that is drawn by a seed (`tests.support.strangers`), from the first seed to before the last.
"""

import argparse
import asyncio
import logging
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from statistics import mean, median
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.progress import track

from benchmarks import figures
from dedup.settings import PROFILES, FilterSettings
from tests.support.living import ADDRESSES, NOISES, Answering, Fates, crawl, pages_of, shuffled
from tests.support.pages.everyday import KINDS, Maker
from tests.support.pages.signs import SIGNS
from tests.support.pages.unnamed import UNNAMED
from tests.support.pages.unseen import UNSEEN
from tests.support.strangers import Site

#: The kinds of page, by what is said of them.
ALL: dict[str, Maker] = KINDS | UNSEEN | UNNAMED | {f"signs: {kind}": make for kind, make in SIGNS.items()}
#: Forms of copies, and how they are called.
FORMS = {"": "own"} | {form: form for form in ("utm", "session", "unknown", "print", "mirror", "other")}
LEARNING = 3  #: pairs of a page and its print copy of a site that do not count


def copies(fates: Fates) -> tuple[Counter[str], Counter[str]]:
    """Copies by their forms, and those that were dropped."""
    met, dropped, printed = Counter[str](), Counter[str](), 0
    seen = set[tuple[str, bool]]()
    for page in fates.order:
        is_print = page.form == "print"
        before = [form for form in (True, False) if (page.key, form) in seen]
        seen.add((page.key, is_print))
        if not before:
            continue
        form = page.form if is_print in before else "print"
        printed += form == "print"
        if form != "print" or printed > LEARNING:
            met[form] += 1
            dropped[form] += page.url in fates.drops
    return met, dropped


def rightly(fates: Fates) -> set[str]:
    """Pages that were kept as the first of their content, or dropped as another of it."""
    first: dict[str, str] = {}
    for page in fates.order:
        first.setdefault(page.key, page.url)
    return {page.url for page in fates.order if (page.url in fates.kept) == (first[page.key] == page.url)}


@dataclass
class Kind:
    """What became of one kind's site in several orders, and at once."""

    name: str
    contents: int
    one_by_one: Sequence[Fates]
    at_once: Fates

    @property
    def all(self) -> list[Fates]:
        return [*self.one_by_one, self.at_once]

    def requests(self) -> float:
        """For each hundred pages."""
        return 100 * sum(fates.requests for fates in self.all) / sum(len(fates.order) for fates in self.all)

    def spread(self) -> float:
        """By how much the numbers of kept pages of the orders differ, in percent of the least."""
        kept = [len(fates.kept) for fates in self.one_by_one]
        return 100 * (max(kept) - min(kept)) / min(kept)

    def changed(self) -> float:
        """The share of the pages that are judged rightly in some orders only."""
        right = [rightly(fates) for fates in self.one_by_one]
        return len(set.union(*right) - set.intersection(*right)) / len(self.at_once.order)

    def at_once_changed(self) -> float:
        """The share of the pages that are judged rightly only one by one, or only at once."""
        return len(rightly(self.one_by_one[0]) ^ rightly(self.at_once)) / len(self.at_once.order)

    def losses(self) -> dict[str, list[str]]:
        """The pages of lost contents that were dropped, with the kept ones, by the rule."""
        found = defaultdict[str, list[str]](list)
        for fates in self.all:
            lost = fates.lost()
            for page in fates.order:
                if page.key in lost and page.url in fates.drops:
                    of, rule = fates.drops[page.url]
                    found[rule].append(f"{page.url} for {of}")
        return found


@dataclass
class Cell:
    """What became of all kinds with one noise, at one form of address."""

    noise: str
    addresses: str
    kinds: list[Kind] = field(default_factory=list)

    def figures(self) -> dict[str, object]:
        """What is told of it."""
        fates = [one for kind in self.kinds for one in kind.all]
        met, dropped, rules = Counter[str](), Counter[str](), Counter[str]()
        for one in fates:
            for total, more in zip((met, dropped), copies(one), strict=True):
                total.update(more)
            rules.update(rule for _, rule in one.drops.values())
        requests, spreads = ([each(kind) for kind in self.kinds] for each in (Kind.requests, Kind.spread))
        pages = sum(len(one.order) for one in fates)
        return {
            "noise": self.noise,
            "address": self.addresses,
            "contents": sum(kind.contents * len(kind.all) for kind in self.kinds),
            "lost": sum(len(one.lost()) for one in fates),
            **{FORMS[form]: round(dropped[form] / met[form], 2) for form in FORMS if met[form]},
            "requests": round(median(requests), 1),
            "worst": round(max(requests), 1),
            "spread": round(median(spreads), 1),
            "widest": round(max(spreads), 1),
            "order": round(mean(map(Kind.changed, self.kinds)), 2),
            "at once": round(mean(map(Kind.at_once_changed, self.kinds)), 2),
            "ms": round(1000 * sum(one.seconds for one in fates) / pages, 2),
            "drops": "  " + ", ".join(f"{rule} {count}" for rule, count in rules.most_common()),
        }


def measure(
    kind: str,
    pages: Sequence[Answering],
    orders: int,
    at_once: int,
    seed: int,
    *,
    again: bool = False,
    **settings: object,
) -> Kind:
    each = [
        shuffled(pages, f"{kind} {seed + number}") for number in range(orders)
    ]  # else all meet with one chance

    def run(order: Sequence[Answering], at_once: int) -> Fates:
        with TemporaryDirectory() as folder:
            index = f"file:{folder}/index" if again else "memory:"
            if again:
                asyncio.run(
                    crawl(
                        shuffled(pages, f"{kind} first"),
                        seed=f"{kind} first",
                        at_once=8,
                        index=index,
                        **settings,
                    )
                )
            return asyncio.run(crawl(order, seed=f"{kind} {seed}", at_once=at_once, index=index, **settings))

    contents = len({page.key for page in pages})
    return Kind(kind, contents, [run(order, 1) for order in each], run(each[0], at_once))


def row(values: Iterable[object]) -> str:
    return "".join(f"{value!s:>9}" for value in values)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kinds", default="", metavar="REGEX", help="which kinds (all)")
    parser.add_argument(
        "--strangers", nargs=2, type=int, metavar=("FIRST", "LAST"), help="sites of strangers instead"
    )
    parser.add_argument("--noise", nargs="+", choices=NOISES)
    parser.add_argument("--addresses", nargs="+", choices=ADDRESSES)
    parser.add_argument("--orders", type=int, default=5, metavar="N")
    parser.add_argument("--at-once", type=int, default=8, metavar="N")
    parser.add_argument("--again", action="store_true", help="tell of second crawls")
    parser.add_argument("--seed", type=int, default=1, metavar="N")
    parser.add_argument("--profile", choices=PROFILES, default="balanced", help="what it sets of the filter")
    figures.add_option(parser)
    parser.add_argument(
        "--quick",
        action="store_true",
        help="a sample of kinds, two orders, and of noises and addresses that are not given",
    )
    options = parser.parse_args()
    profile = {
        name: value for name, value in PROFILES[options.profile].items() if name in FilterSettings.settings()
    }
    logging.getLogger("dedup").setLevel(logging.CRITICAL)  # alarms would tear the table apart
    kinds = [kind for kind in ALL if re.search(options.kinds, kind)]
    if options.quick:
        kinds, options.orders = kinds[:: -(-len(kinds) // 6)], 2
    usual = ("static", "shuffled", "drawn", "clock"), ("id", "words")
    noises, forms = usual if options.quick else (NOISES, ADDRESSES)
    if options.strangers:
        kinds, noises, forms = [*map(str, range(*options.strangers))], ["strangers"], [""]
    found, console = [], Console(stderr=True)
    for noise in options.noise or noises:
        for addresses in options.addresses or forms:

            def pages(kind: str, noise: str = noise, addresses: str = addresses) -> list[Answering]:
                return (
                    Site(int(kind)).pages()
                    if options.strangers
                    else pages_of(kind, ALL[kind], addresses, NOISES[noise])
                )

            cell = Cell(noise, addresses)
            for kind in track(kinds, f"{noise}, {addresses}", console=console, transient=True):
                cell.kinds.append(
                    measure(
                        kind,
                        pages(kind),
                        options.orders,
                        options.at_once,
                        options.seed,
                        again=options.again,
                        **profile,
                    )
                )
            found.append(cell.figures())
            if len(found) == 1:
                print(row(found[0]))
            print(row(found[-1].values()), flush=True)
            for kind in cell.kinds:
                for rule, pages in kind.losses().items():
                    print(
                        f"    {kind.name}: {len(pages)} pages of lost contents dropped by {rule}: {pages[0]}"
                    )
            figures.write(options.figures, found)


if __name__ == "__main__":
    main()
