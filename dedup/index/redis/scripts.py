"""The scripts of an index in Redis: the files under lua/, each after the text that it needs, such as the layout of a record."""

from functools import cache
from importlib.resources import files

from dedup.fingerprint import fingerprint
from dedup.index import weighing
from dedup.index.redis import buckets
from dedup.index.redis.record import layout

#: The scripts of a claim, whose calls share round trips.
TRIPS = ("look", "file")
#: The scripts, each in a file under lua/.
VERBS = "open", "lead", "renew", "learn", "note", "confirm", "release", "state", "add", "forget", *TRIPS
#: What needs nothing before it, since it does not know the index that was opened.
ALONE = "open", "lead"
#: What stands before all others: known.lua tells whether the index is still the one that was opened, tables.lua looks
#: pages up and files them, and bits.lua compares simhashes.
SHARED = "known", "tables", "bits"
#: Numbers that the scripts have from here, by the modules that define them.
LIMITS = {
    buckets: ("MAX_EXACT", "MAX_HERE"),
    weighing: ("MAX_EQUAL", "MAX_LOOKED", "MAX_RARE"),
    fingerprint: ("RARE",),
}


def _numbers() -> str:
    return "".join(
        f"local {name} = {getattr(module, name)!r}\n" for module, names in LIMITS.items() for name in names
    )


@cache
def _bits_apart() -> str:
    """In how many bits any two octets differ, as digits: 64 KB, which a script has at hand and can't compute in time."""
    digits = "".join(str((a ^ b).bit_count()) for a in range(256) for b in range(256))
    return f"local BITS_APART = '{digits}'\n"


def source(verb: str) -> bytes:
    """Returns the text of a script, with what it needs before it."""
    lua = files("dedup.index.redis") / "lua"
    parts = (verb,) if verb in ALONE else (*SHARED, verb)
    generated = "" if verb in ALONE else layout() + _numbers()
    generated += _bits_apart() if verb == "look" else ""
    return (generated + "".join((lua / f"{part}.lua").read_text("utf-8") for part in parts)).encode()
