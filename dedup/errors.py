"""What can go wrong that is not the fault of a page, by whose fault it is.

Hostile *data* never raises; these say that a user or an operator has to act.  Each carries the exit
status that a command, or a crawl that could not start, ends with.

Errors call settings and arguments by their names in Python.  Whoever knows them by other names puts those in
their place (`SettingsError.renamed`): the Scrapy adapter does so for every error, in `dedup.scrapy.settings.spelled`.
"""

from collections.abc import Callable, Mapping


class DedupError(Exception):
    """Base of every error that this library raises on purpose; its text is one line."""

    exit_status = 1
    reason = "dedup_error"  # the finish reason of a crawl that it stops

    def __init__(self, text: str = "", *, settings: tuple[str, ...] = ()) -> None:
        """``settings``: names of those by which a user can mend it."""
        self.settings = settings
        super().__init__(text)


class SettingsError(DedupError, ValueError):
    """A setting or argument has a wrong name, type, range or combination.

    It is made of one text, or of data, which it then carries and makes its text of:

    >>> error = SettingsError(name="min_resemblance", value=2, allowed="a number from 0 to 1")
    >>> print(error)
    min_resemblance is 2; allowed: a number from 0 to 1
    >>> print(error.renamed("--{}".format))
    --min_resemblance is 2; allowed: a number from 0 to 1
    >>> print(SettingsError(name="index", value="file:/tmp", why="which is a directory"))
    index is 'file:/tmp', which is a directory
    >>> print(SettingsError(name="tables", value=7, others={"max_distance": 3}, allowed="4, 10 or None"))
    tables is 7 and max_distance is 3; allowed: 4, 10 or None
    """

    exit_status = 2
    reason = "dedup_settings"

    def __init__(
        self,
        text: str = "",
        *,
        name: str = "",
        value: object = None,
        allowed: str = "",
        why: str = "",
        others: Mapping[str, object] | None = None,
    ) -> None:
        """Pass ``text``, or ``name`` and what is known besides.

        ``value`` is shown as its `repr`; ``allowed`` says in words which values are; ``why`` is a clause that
        goes on from the value ("which ..."); ``others`` are the settings with which it can't be combined.
        """
        self.name = name
        self.value = value
        self.allowed = allowed
        self.why = why
        self.others = dict(others or {})
        super().__init__(self._sentence() if name else text)

    def _sentence(self) -> str:
        settings = {self.name: self.value} | self.others
        *first, last = (f"{name} is {value!r}" for name, value in settings.items())
        sentence = f"{', '.join(first)} and {last}" if first else last
        if self.why:
            sentence += f", {self.why}"
        return f"{sentence}; allowed: {self.allowed}" if self.allowed else sentence

    def renamed(self, spell: Callable[[str], str]) -> "SettingsError":
        """Returns the same error with the names that its reader knows; one that is a mere text is not changed."""
        if not self.name:
            return self
        others = {spell(name): value for name, value in self.others.items()}
        return SettingsError(
            name=spell(self.name), value=self.value, allowed=self.allowed, why=self.why, others=others
        )


class IndexUnavailableError(DedupError):
    """The index can't be reached."""

    exit_status = 3
    reason = "dedup_index_unavailable"


class IndexInUseError(IndexUnavailableError):
    """Another process holds the file of the index."""

    exit_status = 6
    reason = "dedup_index_in_use"


class IndexMismatchError(DedupError):
    """What is stored there is not an index of this library, or was built with other parameters."""

    exit_status = 4
    reason = "dedup_index_mismatch"


class ShardTakenError(IndexMismatchError):
    """Another worker crawls anew what this one would have crawled."""


class CrawlGoneError(IndexMismatchError):
    """The workers of this crawl have ended it without this one, or the server has lost it."""


class IndexCorruptError(DedupError):
    """The index is damaged; nothing in it was changed."""

    exit_status = 5
    reason = "dedup_index_corrupt"


class LogUnavailableError(DedupError):
    """A log that was asked for can't be written."""

    exit_status = IndexUnavailableError.exit_status
    reason = "dedup_log_unavailable"


class OutputError(DedupError):
    """The output can't be written; what was written before is whole, and the work can go on from there."""

    exit_status = 8
    reason = "dedup_output"
