"""What the filter did in a crawl, in a few lines for people."""

from collections.abc import Mapping
from typing import Any

__all__ = ["summary"]


def summary(stats: Mapping[str, Any], log: str) -> str:
    """A block of lines from a crawl's stats.

    >>> print(summary({"dedup/pages": 12, "dedup/new": 7, "dedup/duplicate": 4, "dedup/dropped": 4,
    ...     "dedup/unjudged": 1, "dedup/unjudged/short": 1, "dedup/links_not_followed": 90}, "drops.jsonl"))
    12 pages fetched and judged
      kept      8: 7 new, 1 unjudged (1 short)
      dropped   4 near-duplicates; the 90 links on them were not followed
      drop log  drops.jsonl
    """

    def count(name: str) -> int:
        return int(stats.get(f"dedup/{name}", 0))

    def parts(name: str) -> str:
        prefix = f"dedup/{name}/"
        found = sorted(
            (key.removeprefix(prefix), value) for key, value in stats.items() if key.startswith(prefix)
        )
        return f"{count(name):,} {name}" + (
            f" ({', '.join(f'{n:,} {what}' for what, n in found)})" if found else ""
        )

    kept = [f"{count('new'):,} new"]
    if count("same"):
        kept.append(f"{count('same'):,} seen before at the same URL")
    if count("unjudged"):
        kept.append(parts("unjudged"))
    passed = count("duplicate") - count("dropped")
    if passed:
        kept.append(f"{passed:,} near-duplicates marked but not dropped")
    lines = [
        f"{count('pages'):,} pages fetched and judged"
        + (f", {parts('skipped')}" if count("skipped") else ""),
        f"  kept      {count('pages') - count('dropped'):,}: {', '.join(kept)}",
        f"  dropped   {count('dropped'):,} near-duplicates",
    ]
    if count("links_not_followed"):
        lines[-1] += f"; the {count('links_not_followed'):,} links on them were not followed"
    lines.append(f"  drop log  {log}")
    return "\n".join(lines)
