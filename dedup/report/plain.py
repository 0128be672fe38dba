"""A report as tables, for browsers that run no scripts."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from dedup.printing import many, printable

#: The most rows of a table.
MAX_ROWS = 1_000


def tables(data: Mapping[str, Any]) -> str:
    """Returns the data of a report as tables in HTML, in ASCII."""
    totals, urls = data["totals"], data["urls"]
    fields = {name: at for at, name in enumerate(data["pair_fields"])}

    def pair(values: Sequence[Any]) -> Iterable[object]:
        return (
            *(urls[values[fields[name]]] for name in ("url", "duplicate_of")),
            *(values[fields[name]] for name in ("distance", "resemblance", "why")),
        )

    runs = [(kind, *run) for kind, _, runs in data["noise"] for run in runs]
    said = (
        f"{', '.join(data['logs'])}: {many(totals['drops'], 'near-duplicate')} of {many(totals['clusters'], 'kept page')} on "
        f"{many(totals['hosts'], 'host')}, with {many(totals['links'], 'link')}. With scripts, this report has charts, sliders "
        "and pages side by side."
    )
    parts = [
        f"<p>{escape(printable(said))}</p>",
        _table("Hosts", ("Host", "Near-duplicates", "Links", "Bytes"), data["hosts"]),
        _table("Noise", ("URL pattern", "Words", "Regular expression", "Near-duplicates"), runs),
        _table(
            "Near-duplicates",
            ("Near-duplicate", "Kept page", "Distance", "Resemblance", "Why"),
            map(pair, data["pairs"][:MAX_ROWS]),
        ),
    ]
    return "".join(parts).encode("ascii", "xmlcharrefreplace").decode("ascii")


def _table(caption: str, heading: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    names = "".join(f'<th scope="col">{name}</th>' for name in heading)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    return (
        f"<h2>{caption}</h2><div class=scroll><table><thead><tr>{names}</tr></thead><tbody>{body}</tbody></table></div>"
        if body
        else ""
    )


def _cell(value: object) -> str:
    if isinstance(value, str):
        return f"<td class=url>{escape(printable(value))}</td>"
    return f"<td class=number>{'' if value is None else value}</td>"
