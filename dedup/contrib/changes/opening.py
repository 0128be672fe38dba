"""Opens what tells how a site has changed since earlier crawls."""

import logging
import sqlite3
from pathlib import Path

from dedup.contrib.changes.file import History
from dedup.contrib.changes.listener import Changes

logger = logging.getLogger(__name__)


def open_changes(path: Path, run: str, *, keeps_pairs: bool) -> Changes | None:
    """Returns what tells that, for a run, by the history at a path; None if that can't be opened."""
    try:
        history = History(path)
        history.begin(run)
    except (sqlite3.Error, OSError) as error:
        logger.warning("Texts of pages are not kept: %s can't be used: %s", path, error)
        return None
    return Changes(history, keeps_pairs=keeps_pairs)
