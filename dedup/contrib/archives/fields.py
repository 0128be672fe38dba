"""Checks, once the inputs are read, that they hold pages, and the fields that a caller names."""

from collections.abc import Sequence

from dedup.contrib.archives.capture import Reader
from dedup.contrib.archives.journal import Journal
from dedup.contrib.archives.rows import USUAL, FieldNames
from dedup.errors import SettingsError
from dedup.page.preference import PREFERENCES
from dedup.printing import inert, many

#: Which of pages alike may be kept, beside a preference or the one of the greatest value in a field of rows.
WORDS = ("first", "newest")


def check(journal: Journal, readers: Sequence[Reader], named: FieldNames, keep: str) -> None:
    """Raises `SettingsError` if no record holds a page, or if a field that is named is in no row."""
    try:
        _check_pages(journal)
        _check_keys(journal, named, keep)
        _check_names(journal, readers, named)
    except SettingsError:
        journal.set(begun=None)  # so that nothing is left to go on from
        raise


def _check_pages(journal: Journal) -> None:
    others: dict[str, tuple[int, str]] = journal.get("others")
    if journal.count() or not others or journal.get("damage"):
        return
    reasons = ", ".join(f"{count:,} {why}" for why, (count, _) in sorted(others.items()))
    raise SettingsError(
        f"no page is in {many(sum(count for count, _ in others.values()), 'record')} ({reasons}): a row needs html or text, "
        "or the field of --text; an answer needs the status 200 and a type of DEDUP_TYPES"
    )


def _check_keys(journal: Journal, named: FieldNames, keep: str) -> None:
    if (named.key or keep == "newest") and journal.count() and not journal.has_keys():
        why = "no row has a number or a time in a field of that name"
        raise SettingsError(
            f"--keep is '{inert(keep)}', and "
            f"{'of no page it is known when it was fetched' if keep == 'newest' else why}; "
            f"allowed: {', '.join((*WORDS, *PREFERENCES))}, MODULE:FUNCTION, or the name of a field of rows"
        )


def _check_names(journal: Journal, readers: Sequence[Reader], named: FieldNames) -> None:
    if named.id != USUAL.id and next(journal.names(), None) is not None:
        inputs = {reader.name for reader in readers}
        parts = (name.rpartition(":") for name in journal.names())
        if all(name in inputs and row.isdigit() for name, _, row in parts):
            raise SettingsError(
                f"--id is '{inert(named.id)}', and no row without a url has anything in a field of that name; "
                "allowed: the name of a field that names rows"
            )
