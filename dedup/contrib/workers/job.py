"""What a worker that is stopped with a JOBDIR leaves there, for the one that goes on with the job."""

from pathlib import Path

from msgspec import Struct, json

from dedup.contrib.workers.handover import Handover, Link
from dedup.contrib.workers.partition import Shard
from dedup.errors import SettingsError

FILE = "dedup.shard"


class _Rest(Struct):
    shard: str
    crawl: str
    cursor: int  #: how far the log of the shard was read
    outbox: list[Link]


class Job:
    """How far the log of the shard was read, and the links that could not be handed over.

    One that is killed leaves nothing: then all that was handed to its shard is crawled again.
    """

    def __init__(self, folder: str | None, shard: Shard) -> None:
        self.path = Path(folder, FILE) if folder else None
        self._shard = shard
        self.crawl, self.cursor, self.outbox = "", -1, dict[bytes, Link]()
        if self.path is None or not self.path.exists():
            return
        try:
            left = json.decode(self.path.read_bytes(), type=_Rest)
        except (OSError, ValueError, RecursionError):
            return  # it is damaged: then all that was handed to the shard is crawled again
        if left.shard != str(shard):
            why = f"but its JOBDIR is that of shard {left.shard}; go on as that shard, or with another JOBDIR"
            raise SettingsError(name="shard", value=str(shard), why=why)
        self.crawl, self.cursor = left.crawl, left.cursor
        self.outbox = {link.member: link for link in left.outbox}

    def begin(self) -> None:
        """From now on nothing is left, if this worker is killed.  Raises OSError."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)

    def leave(self, handover: Handover, outbox: dict[bytes, Link]) -> None:
        """Writes how far the log of the shard was read."""
        if self.path is None or self._shard.number is None:
            return
        cursor = handover.held.get(self._shard.number, self.cursor)
        left = _Rest(str(self._shard), handover.crawl, cursor, [*outbox.values()])
        self.path.write_bytes(json.encode(left))
