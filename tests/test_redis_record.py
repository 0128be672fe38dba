"""The bytes of a record are defined once: in dedup/index/redis/record.py, from which the scripts have them."""

import random
import re
import struct
from dataclasses import replace
from importlib.resources import files

import pytest

from dedup.fingerprint.detector import Detector
from dedup.fingerprint.features import Features
from dedup.fingerprint.fingerprint import Called
from dedup.index import Entry, weighing
from dedup.index.entry import storable_id
from dedup.index.redis.record import layout, pack, unpack, whole
from dedup.index.redis.scripts import VERBS, source
from tests.support.coroutines import driven
from tests.support.fingerprints import Claim, fingerprint_of
from tests.support.redis import Server
from tests.support.stores import ODD_IDS, opened
from tests.support.surveys import entry

ENTRY = Entry(
    "id é",
    "http://example.org/",
    1 << 63,
    2,
    3,
    (4, 5),
    b"sketch",
    1_800_000_000,
    "0f" * 16,
    6,
    Called(7, 8, 9),
    (10, 11, 12, 13),
)
#: Bytes of format 5, which every later version of that format has to read.
STORED = (
    bytes.fromhex(
        "8000000000000000"
        "0000000000000002"
        "0000000000000003"
        "6b49d200" + "0f" * 16 + "0000000000000006"
        "0000000000000007"
        "0000000000000008"
        "0000000000000009"
        "000000000000000a"
        "000000000000000b"
        "000000000000000c"
        "000000000000000d"
        "02"
        "0000000000000004"
        "0000000000000005"
        "0006" + b"sketch".hex() + "00000005" + "id é".encode().hex()
    )
    + b"http://example.org/"
)


def test_a_record_has_the_bytes_that_it_always_had() -> None:
    assert pack(ENTRY) == STORED
    assert unpack(STORED) == ENTRY


def test_the_scripts_find_each_field_where_python_puts_it() -> None:
    places = {
        name: (int(first), int(last))
        for name, first, last in re.findall(r"local (\w+)_AT, \w+_END = (\d+), (\d+)", layout())
    }
    fields = {name: STORED[first - 1 : last] for name, (first, last) in places.items()}
    assert fields == {
        "SIMHASH": struct.pack(">Q", ENTRY.simhash),
        "SCOPE": struct.pack(">Q", ENTRY.scope),
        "DIGEST": struct.pack(">Q", ENTRY.digest),
        "FILED": struct.pack(">I", ENTRY.filed),
        "RUN": bytes.fromhex(ENTRY.run),
        "MARKUP": struct.pack(">Q", 6),
        "HEADING": struct.pack(">Q", 7),
        "NAMES": struct.pack(">Q", 8),
        "PLACE": struct.pack(">Q", 9),
        **{f"RARE{number}": struct.pack(">Q", 10 + number) for number in range(4)},
        "BAND_COUNT": b"\2",
    }


@pytest.mark.parametrize("verb", VERBS)
def test_no_script_names_a_place_or_a_limit_by_its_number(verb: str) -> None:
    lua = files("dedup.index.redis").joinpath(f"lua/{verb}.lua").read_text()
    lines = [line.partition("--")[0] for line in lua.splitlines()]
    code = "\n".join(
        line for line in lines if not re.fullmatch(r"local [A-Z_]+ = \d+ *", line)
    )  # it has a name
    words = r"rshift\(x, \d+\)|0x[0-9a-f]+|4294967296|<I4|/ 4\b|4 \* (i|at)|32 / width|8 \*"  # of 32 bits; then octets
    arithmetic = words + r"|bucket, 16|16 - bucket_bits|256 \* octet \+ (1|2|256)\b"
    numbers = {int(number) for number in re.findall(r"\b\d+\b", re.sub(arithmetic, "", code))}
    assert max(numbers, default=0) <= 15, numbers  # places of arguments, and the digits of a number
    for name in ("MAX_COMPARED", "MAX_EQUAL", "MAX_LOOKED", "MAX_RARE"):
        assert f"local {name}" not in lua
        assert name not in code or f"local {name} = {getattr(weighing, name)}\n".encode() in source(verb)


@driven
async def test_a_limit_that_is_changed_in_python_reaches_the_script(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two pages share a prefix with a third, but only the second has a resemblance that is near enough."""
    unlike, near, third = fingerprint_of(1, changed=512), fingerprint_of(2), fingerprint_of(0)
    for limit, status in ((2, "duplicate"), (1, "new")):
        monkeypatch.setattr(weighing, "MAX_COMPARED", limit)
        async with opened(server.address, f"limit {limit}") as index:
            await index.claim("far", "http://far/", unlike)
            await index.claim("near", "http://near/", near)
            assert (await index.claim("third", "http://third/", third)).status == status


@pytest.mark.parametrize("bits", [2, 4, 8])
@driven
async def test_the_script_estimates_resemblances_as_python_does(server: Server, bits: int) -> None:
    """Whatever the width of a slot: the threshold lies right between two estimates."""
    slots, values = 512, (1 << bits) - 1
    detector = Detector(max_distance=3, min_resemblance=0.7, features=Features(slots=slots, bits=bits))

    def sketch(changed: int) -> bytes:
        lanes = 8 // bits
        filled = [2] * changed + [1] * (slots - changed)
        return bytes(
            sum(value << bits * at for at, value in enumerate(filled[start : start + lanes]))
            for start in range(0, slots, lanes)
        ) + bytes(8)

    def claim(number: int, changed: int) -> Claim:
        return f"{number}", f"http://{number}/", replace(fingerprint_of(number), sketch=sketch(changed))

    most = max(
        changed
        for changed in range(slots)
        if (values * (slots - changed) - slots) / ((values - 1) * slots) >= 0.7
    )
    async with opened(server.address, detector=detector) as index:
        await index.claim(*claim(0, 0))
        assert (await index.claim(*claim(1, most))).status == "duplicate"
        assert (await index.claim(*claim(2, most + 1))).status == "new"


def test_a_record_is_whole_or_none() -> None:
    record = pack(entry(1, bands=(1, 2)))
    assert whole(record) == entry(1, bands=(1, 2)) == unpack(record)
    rng = random.Random(6)
    for _ in range(3000):
        spoilt = bytearray(record)
        spoilt[rng.randrange(len(spoilt))] = rng.randrange(256)
        found = whole(bytes(spoilt[: rng.randrange(30, 2 * len(spoilt))]))
        assert found is None or isinstance(found, Entry)
    for cut in range(len(record) - len(entry(1).url.encode())):
        assert whole(record[:cut]) is None
    for page_id in map(storable_id, ODD_IDS.values()):
        assert whole(pack(entry(1, page_id=page_id))) == entry(1, page_id=page_id)
