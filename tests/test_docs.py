"""What is written about the project is true: examples print what the text shows, and every path is there.

The blocks marked ``console`` are run in the order of the text, and files that it shows are written.  Numbers,
dates and session ids may differ; "..." in the text stands for any lines.
"""

import doctest
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support import ROOT
from tests.support.waiting import LIMIT
from tests.support.warm import programs

PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    *(ROOT / "docs").glob("*.md"),
    *(ROOT / "docs" / "contrib").glob("*.md"),
]
BLOCK = re.compile(r"^```(console|python|html)\n(.*?)^```", re.MULTILINE | re.DOTALL)
#: A line that names the file of a block, as in "# spiders/pages.py" and "<!-- site/index.html -->".
FILE = re.compile(r"(?:# |<!-- )(\S+\.(?:py|html))(?: -->)?\n")


ONE_BY_ONE = "SCRAPY_SETTINGS_MODULE=one_by_one python -m crawler"


def shape(line: str) -> str:
    """A line without what varies from run to run."""
    line = re.sub(r"(\S+ \S+ to )?\d+-\d\d-\d\d \d\d:\d\d:\d\d", "TIME", line)
    line = re.sub(r"\[dedup[.\w]*\]", "[dedup]", line)  # the module that logged it
    line = re.sub(
        r"; \d+ of these on hosts of which little was known$", "", line
    )  # as pages happened to come
    line = re.sub(r"file:///\S*/[ab]", "file:///a", re.sub(r"\b\d+\.\d+|\b[0-9a-f]{12,}\b", "#", line))
    return " ".join(re.sub(r"(\d[.,]?)+|#+", "#", line).split())


def runs(block: str) -> list[tuple[str, list[str]]]:
    """Commands of a console block, and the lines that they are to print."""
    parts = re.split(r"^\$ ", block, flags=re.MULTILINE)
    return [(part.partition("\n")[0], part.partition("\n")[2].splitlines()) for part in parts if part]


def agrees(line: str, printed: str) -> bool:
    """Whether a line is as the text shows it; one that ends with "..." is shown in part."""
    return printed.startswith(line[:-3]) if line.endswith("...") else printed == line


def assert_shown(wanted: list[str], printed: list[str]) -> None:
    """Each line is printed after the one before it, at once unless "..." stands between them."""
    at, skipping = 0, False
    for line in map(shape, wanted):
        if line == "...":
            skipping = True
        elif line:
            found = next((i for i in range(at, len(printed)) if agrees(line, printed[i])), None)
            assert found is not None, f"not printed: {line!r}, in:\n" + "\n".join(printed[at:])
            assert skipping or found == at, f"printed before {line!r}: {printed[at:found]}"
            at, skipping = found + 1, False
    assert skipping or not printed[at:], f"also printed: {printed[at:]}"


@pytest.mark.parametrize(
    ("page", "least"),
    [("README.md", 1), ("docs/quickstart.md", 12), ("docs/inspect.md", 15), ("docs/contrib/archives.md", 3)],
)
def test_every_example_prints_what_the_text_shows(
    page: str, least: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(programs()), prepend=":")
    # Of requests at the same time, other pages may be first, and other lines be told.
    (tmp_path / "one_by_one.py").write_text("from crawler.settings import *\nCONCURRENT_REQUESTS = 1\n")
    monkeypatch.setenv("PYTHONPATH", f"{ROOT}:{tmp_path}")
    folder, examples = tmp_path, 0
    for kind, block in BLOCK.findall((ROOT / page).read_text()):
        if kind != "console":
            if named := FILE.match(block):
                path = folder / named[1]
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(block)
            continue
        for command, wanted in runs(block):
            if command.startswith("cd "):
                folder /= command.removeprefix("cd ")
                continue
            done = subprocess.run(
                ["bash", "-c", command.replace("make crawl", ONE_BY_ONE)],
                check=False,
                cwd=folder,
                capture_output=True,
                text=True,
                timeout=LIMIT,
            )
            printed = [shape(line) for line in done.stdout.splitlines() if line.strip()]
            print(f"$ {command}\n{done.stdout}{done.stderr[-2000:]}")
            assert_shown(wanted, printed)
            examples += 1
    assert examples >= least


def examples_of_python() -> doctest.DocTest:
    text = (ROOT / "docs" / "python.md").read_text()
    blocks = re.sub(r"^```pycon\n(.*?)^```", r"\1", text, flags=re.MULTILINE | re.DOTALL)
    return doctest.DocTestParser().get_doctest(blocks, {}, "python.md", "docs/python.md", 0)


def test_the_examples_in_python_print_what_the_text_shows() -> None:
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    runner.run(examples_of_python())
    assert runner.summarize(verbose=False).failed == 0
    assert runner.tries >= 25


def test_the_examples_in_python_have_the_types_that_the_library_says(tmp_path: Path) -> None:
    """Those of docs/python.md, and the crawler of docs/filter.md, which httpx is there for."""
    crawler = re.search(
        r"^```python\n(# crawl\.py\n.*?)^```", (ROOT / "docs/filter.md").read_text(), BLOCK.flags
    )
    assert crawler
    sources = {
        "examples.py": "".join(example.source for example in examples_of_python().examples),
        "crawl.py": crawler[1],
    }
    for name, source in sources.items():
        (tmp_path / name).write_text(source)
    # As `make check` does, whose cache it so has: without one, it takes ten times as long.
    checked = [sys.executable, "-m", "mypy", *(tmp_path / name for name in sources)]
    done = subprocess.run(checked, check=False, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_bash_completes_the_commands_as_the_reference_says() -> None:
    found = re.search(
        r'^complete -W "\$\(scrapy( \| .*)\)" scrapy$', (ROOT / "docs/reference.md").read_text(), re.MULTILINE
    )
    assert found
    called = f"'{sys.executable}' -m scrapy{found[1]}"
    done = subprocess.run(["bash", "-c", called], check=True, cwd=ROOT, capture_output=True, text=True)
    assert {"crawl", "duplicates", "compare", "index"} < {*done.stdout.split()}


def figures(name: str) -> list[dict[str, Any]]:
    """The rows of a file of figures."""
    kept = json.loads((ROOT / "docs" / "figures" / name).read_text())
    return [row for measured in kept.values() for row in measured["rows"]]


def test_the_readme_says_what_was_measured() -> None:
    said = (ROOT / "README.md").read_text()
    for row in (row for row in figures("resemblance.json") if row["order"] == 42):
        others = max(each["false"] for each in figures("identity.json") if each["site"] == row["site"])
        peers = (
            peer
            for peer in figures("peers.json")
            if peer["site"] == row["site"] and "Shingleback" not in peer["rule"]
        )
        peer = max(peers, key=lambda peer: 1 / (1 / peer["precision"] + 1 / peer["recall"]))
        best = f"{100 - 100 * peer['precision']:.2f} % false, {100 * peer['recall']:.4g} % ({peer['rule'].split(',')[0]})"
        assert (
            f"| {row['false']} of {row['drops']:,} | {100 * row['recall']:.1f} % | {others} | {best} |"
            in said
        )
    living = figures("living-all.json")
    assert sum(row["lost"] for row in living) == 0
    (static,) = (row for row in living if row["noise"] == "static")
    assert f"| {static['requests']:.0f}, at most {static['worst']:.0f} |" in said
    noisy = [row for row in living if row["noise"] != "static"]
    medians = sorted(row["requests"] for row in noisy)
    worst = max(row["worst"] for row in noisy)
    assert f"| {medians[0]:.0f} to {medians[-1]:.0f}, at most {worst:.0f} |" in said
    for code, of in (("compiled", "CPU of a page, compiled"), ("in Python", "no C compiler")):
        page = [row for row in figures("page.json") if row["code"] == code and row["what"].startswith("mark")]
        ratios = sorted(row[name] for row in page for name in ("ratio", "median ratio"))
        assert re.search(rf"{of}.* \| {ratios[0]:.1f} to {ratios[-1]:.1f} \|", said)


#: A path of the project in code font: `dedup/page/html.py`, `tests/faults`, `.ci/run`.
PATH = re.compile(r"`((?:dedup|crawler|tests|benchmarks|docs|\.ci)/[\w./-]*)`")
LINK = re.compile(r"\]\((?!\w+:)([^)#]*)#?([^)]*)\)")


def headings(page: Path) -> set[str]:
    """The anchors of a page, as GitHub and MyST make them from its headings."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    found = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in found}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_a_page_links_to_and_names_is_there(page: Path) -> None:
    text = page.read_text()
    for path, anchor in LINK.findall(text):
        target = page.parent / path if path else page
        assert target.exists(), f"it links to {path}"
        assert not anchor or anchor in headings(target), f"it links to {path}#{anchor}"
    tests = "".join(path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    for name in re.findall(r"`(test_\w+)`", text):
        assert f"def {name}(" in tests
    reference = (ROOT / "docs" / "reference.md").read_text()
    stats = re.findall(r"^\| `(dedup/[a-z0-9_/]+)`", reference, re.MULTILINE)
    for path in PATH.findall(text):
        is_stat = any(stat.startswith(path) for stat in stats)
        assert is_stat or path == "docs/_build" or (ROOT / path).exists(), f"it names {path}"
