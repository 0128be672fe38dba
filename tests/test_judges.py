"""The judges of a page: their table, and the one that has decided, as the logs, `index why` and `compare` name it."""

from dedup.filter.judges import JUDGES
from tests.support import ROOT


def test_the_documents_have_the_table() -> None:
    order = ("", "new", "same", "duplicate")
    rows = [
        f"| `{judge.name}` | {', '.join(status or 'none' for status in order if status in judge.hears)} "
        f"| {judge.says} | {judge.leaves} |"
        for judge in JUDGES
    ]
    text = (ROOT / "docs" / "what-becomes-of-a-page.md").read_text()
    assert [line for line in text.splitlines() if line.startswith("| `")] == rows
