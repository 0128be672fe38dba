"""The scripts of an index in Redis: the files under lua/, each after the text that it needs."""

from functools import cache
from importlib.resources import files

from dedup.fingerprint import fingerprint
from dedup.index import weighing
from dedup.index.redis import buckets
from dedup.index.redis.record import layout

#: The scripts of a claim, whose calls share round trips.
TRIPS = ("look", "file")
#: The scripts, each in a file under lua/.  Before the text of each stands what it needs: the layout of a
#: record, the limits of a claim, and known.lua, which tells whether the index is still the one that was opened;
#: tables.lua looks pages up and files them; bits.lua compares simhashes.
VERBS = {
    **dict.fromkeys(("open", "lead"), ()),
    **dict.fromkeys(("renew", "learn"), ("layout", "known")),
    **dict.fromkeys(
        ("confirm", "release", "state", "add", "forget"), ("layout", "limits", "known", "tables")
    ),
    "look": ("layout", "limits", "known", "tables", "bits", "apart"),
    "file": ("layout", "limits", "known", "tables", "bits"),
}
#: Numbers that the scripts have from here, by the modules that define them.
LIMITS = {
    buckets: ("MAX_EXACT", "MAX_HERE", "MAX_WHOLE"),
    weighing: ("MAX_EQUAL", "MAX_LOOKED", "MAX_RARE"),
    fingerprint: ("RARE",),
}


@cache
def bits_apart() -> str:
    """In how many bits any two octets differ, as digits: 64 KB, which a script has at hand and can't compute in time."""
    return "".join(str((a ^ b).bit_count()) for a in range(256) for b in range(256))


def limits() -> str:
    """Returns the limits of a look, as Lua, and returns the same as in the other stores."""
    numbers = (
        f"local {name} = {getattr(module, name)!r}\n" for module, names in LIMITS.items() for name in names
    )
    return "".join(numbers)


def source(verb: str) -> bytes:
    """Returns the text of a script, with what it needs before it."""
    lua = files("dedup.index.redis") / "lua"
    generated = {"layout": layout(), "limits": limits(), "apart": f"local BITS_APART = '{bits_apart()}'\n"}
    texts = (generated.get(part) or (lua / f"{part}.lua").read_text("utf-8") for part in (*VERBS[verb], verb))
    return "".join(texts).encode()
