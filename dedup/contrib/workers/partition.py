"""Which worker crawls which hosts: rendezvous hashing (Thaler, Ravishankar 1998), on which all workers agree."""

import re
from dataclasses import dataclass
from functools import lru_cache

import xxhash

from dedup.settings import SETTINGS

#: How many shards a crawl may have: each link is weighed with every one, and each beat looks at all.
MAX_SHARDS = 100


@dataclass(frozen=True)
class Shard:
    """The part of the hosts that a worker crawls.

    >>> print(Shard.read("2/4"), Shard.read("auto/4"))
    2/4 auto/4
    >>> Shard.read("5/4")
    Traceback (most recent call last):
    dedup.errors.SettingsError: shard is '5/4'; allowed: 'I/N' (shard I of N, from 1/N to N/N; N up to 100) or 'auto/N' (any that is free)
    """

    number: int | None  #: from 0 on; None: any that is free
    of: int

    @classmethod
    def read(cls, text: str) -> "Shard":
        """Returns the shard that a setting names.  Raises `SettingsError`."""
        named = re.fullmatch(r"(auto|[1-9]\d{0,3})/([1-9]\d{0,3})", text, re.ASCII)
        if named and int(named[2]) <= MAX_SHARDS:
            number = None if named[1] == "auto" else int(named[1]) - 1
            if number is None or number < int(named[2]):
                return cls(number, int(named[2]))
        raise SETTINGS["shard"].refusal(text)

    def __str__(self) -> str:
        return f"{'auto' if self.number is None else self.number + 1}/{self.of}"


@lru_cache(maxsize=10_000)
def owner(host: str, shards: int) -> int:
    """Returns the number of the shard, from 0 on, to which a host belongs: the one whose hash with it is greatest.

    With one shard more, only hosts that move to the new one change.  It takes a hash for each shard.

    >>> [owner(f"www{number}.example.org", 4) for number in range(8)]
    [3, 3, 3, 3, 1, 0, 1, 3]
    """
    return max(range(shards), key=lambda number: xxhash.xxh3_64_intdigest(f"{number} {host}".encode()))
