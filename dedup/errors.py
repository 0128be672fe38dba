"""What can go wrong that is not the fault of a page, by whose fault it is.

Hostile *data* never raises; these say that a user or an operator has to act.  Each carries the exit
status that a command, or a crawl that could not start, ends with.
"""


class DedupError(Exception):
    """Base of every error that this library raises on purpose; its text is one line."""

    exit_status = 1
    reason = "dedup_error"  # the finish reason of a crawl that it stops


class SettingsError(DedupError, ValueError):
    """A setting or argument has a wrong name, type, range or combination."""

    exit_status = 2
    reason = "dedup_settings"


class IndexUnavailableError(DedupError):
    """The index can't be reached, or another crawl holds it."""

    exit_status = 3
    reason = "dedup_index_unavailable"


class IndexMismatchError(DedupError):
    """What is stored there is not our index, or was built with other parameters."""

    exit_status = 4
    reason = "dedup_index_mismatch"


class IndexCorruptError(DedupError):
    """The index is ours but damaged; it has been left as it is."""

    exit_status = 5
    reason = "dedup_index_corrupt"
