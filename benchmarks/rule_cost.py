"""What a page costs in the processor, by itself and with its claim: of the .html files below a folder, and of a shop.

    PYTHONPATH=. python benchmarks/rule_cost.py [FOLDER] [--most 900]

With another checkout's PYTHONPATH, it measures that one: run both in turn.
"""

import argparse
import asyncio
import random
import time
from pathlib import Path

from dedup import Detector, open_index


def shop(count: int) -> list[tuple[str, bytes]]:
    """Items in 600 words of unmarked menu, a quarter of them copies with another counter."""
    rng = random.Random(3)
    words = ["".join(rng.choices("abcdefghijklmnop", k=rng.randrange(3, 9))) for _ in range(6_000)]
    menu = "".join(f"<li><a href='/c/{at}'>{' '.join(rng.choices(words, k=3))}</a>" for at in range(200))
    pages = []
    for number in range(count):
        own = random.Random(number // 2 if number % 4 == 1 else number)
        text = f"<h1>{' '.join(own.choices(words, k=3))}</h1><p>{' '.join(own.choices(words, k=120))}"
        html = f"<body><ul>{menu}</ul>{text}<p>seen {rng.randrange(9_999)}"
        pages.append((f"http://shop.example/item/{number}.html", html.encode()))
    return pages


async def measure(name: str, pages: list[tuple[str, bytes]]) -> None:
    detector = Detector()
    index = open_index("memory:", detector)
    started = time.process_time()
    prints = [detector.fingerprint(html, url) for url, html in pages]
    made = time.process_time()
    for (url, _), fingerprint in zip(pages, prints, strict=True):
        await index.claim(url, url, fingerprint)
        await index.confirm(url)
    done = time.process_time()
    await index.close()
    each = 1_000 / len(pages)
    print(
        f"{name}: {each * (made - started):.2f} ms a fingerprint, {each * (done - made):.2f} a claim, of {len(pages)} pages"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--most", type=int, default=900, help="pages, taken at random")
    arguments = parser.parse_args()
    if arguments.folder:
        files = sorted(arguments.folder.rglob("*.html"))
        random.Random(1).shuffle(files)
        some = files[: arguments.most]
        pages = [
            (f"http://localhost/{file.relative_to(arguments.folder)}", file.read_bytes()) for file in some
        ]
        asyncio.run(measure(arguments.folder.name, pages))
    asyncio.run(measure("a shop", shop(arguments.most)))


if __name__ == "__main__":
    main()
