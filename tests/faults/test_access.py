"""Least rights and TLS: an index needs few commands, and trusts no certificate that it should not."""

import asyncio
import datetime
import ipaddress
import re
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from dedup.contrib.workers.handover import Handover, Link, Note
from dedup.contrib.workers.partition import Shard
from dedup.errors import IndexUnavailableError
from dedup.index import open_index
from dedup.index.batching import end
from dedup.index.redis.delay import Delay
from dedup.scrapy.delay import SharedDelayMiddleware
from tests.support import ROOT, slow
from tests.support.cluster import free_ports, running_cluster
from tests.support.coroutines import driven
from tests.support.crawls import Run, page
from tests.support.fingerprints import fingerprint_of
from tests.support.redis import Server, running_server
from tests.support.servers import free_port
from tests.support.shards import Hosts, Worker, kept, serve
from tests.support.stores import DETECTOR, opened
from tests.support.waiting import LIMIT

#: What docs/reliability.md tells an operator to set, for the index and for what is used beside it.
LINES = [
    line.partition("crawler ")[2].partition(">PASSWORD")[2] or line.partition("crawler ")[2]
    for line in ROOT.joinpath("docs/reliability.md").read_text().replace("\\\n", " ").splitlines()
    if line.startswith("ACL SETUSER crawler ")
]


def let(server: Server, namespace: str, *lines: str) -> str:
    """The address for a user with these rights, and no others."""
    rights = " ".join(lines).replace("NAMESPACE", namespace).split()
    server.client.execute_command("ACL", "SETUSER", "crawler", "reset", "on", ">secret", *rights)
    server.client.execute_command("ACL", "LOG", "RESET")
    return f"unix://crawler:secret@{server.socket}"


def denied(server: Server) -> list[str]:
    """What was refused, but for the client's wish to tell its own name."""
    return [entry["object"] for entry in server.client.acl_log() if "setinfo" not in str(entry["object"])]


async def use_index(address: str) -> None:
    async with opened(address) as index:
        assert (await index.claim("a", "http://a/", fingerprint_of(1))).status == "new"
        assert (await index.claim("b", "http://b/", fingerprint_of(1))).of == "http://a/"
        assert (await index.claim("c", "http://c/", fingerprint_of(2**64 - 1))).status == "new"
        await index.confirm("a")
        await index.release("c")
        assert await index.states(["a", "c"]) in (["pending", "absent"], ["done", "absent"])
        assert await index.count() == 1
        assert await index.find("a") is not None
        page = DETECTOR.fingerprint("<p>" + " ".join(f"word{n}" for n in range(100)))
        assert (await index.claim("d", "http://d/", page)).status == "new"


async def use_shards(address: str) -> None:
    handover = Handover(address, "test", Shard.read("1/1"), 60)
    try:
        await handover.beat([Link(0, b"a", b"a"), Link(0, b"b", b"b")])
        await handover.beat(notes=[Note(0, b"a", b"a"), Note(0, b"b", b"", b"one of 16 bytes.")])
        while await handover.inherit(0) is not None:
            pass
        await handover.beat(idle=True)
        await handover.leave("finished")
    finally:
        await handover.close()


async def use_delay(address: str) -> None:
    delay = Delay(address, 0.01)
    host = f"{uuid4().hex}.example"  # one of which nothing is on its way from before
    taking = None
    try:
        lease = await delay.take(host)
        taking = asyncio.create_task(delay.take(host))
        await asyncio.sleep(0.05)
        await delay.end(host, lease)
        await delay.end(host, await taking)
    finally:
        with suppress(IndexUnavailableError):
            await end(taking)  # else it connects once more
        await delay.close()


USES = [(use_index, LINES[:1]), (use_shards, LINES[:2]), (use_delay, [LINES[0], LINES[2]])]


@pytest.mark.parametrize(("use", "lines"), USES)
def test_a_right_that_is_missing_is_named(
    server: Server, use: Callable[[str], Awaitable[None]], lines: list[str]
) -> None:
    asyncio.run(use(let(server, "test", *lines)))
    assert denied(server) == []
    server.client.flushall()
    needed = 0
    for right in [word for word in lines[-1].split() if word.startswith("+")]:
        address = let(server, "test", *lines, "-" + right[1:])
        try:
            asyncio.run(use(address))
        except IndexUnavailableError as error:
            assert re.search(rf"lacks the right [^;]*{re.escape(right)}\b", str(error))  # noqa: PT017
            assert not re.search(r"\n|secret", str(error))  # noqa: PT017
            needed += 1
        server.client.flushall()
    assert needed > len(lines[-1].split()) / 2


def test_a_crawl_needs_no_more_than_the_documented_rights(crawl: Run, server: Server, namespace: str) -> None:
    pages = {
        "/": page("home", "/a", "/b", "/c"),
        "/a": page("story"),
        "/b": page("story", more="b"),
        "/c": page("c"),
    }
    settings = {
        "DEDUP_INDEX": let(server, namespace, LINES[0], LINES[2]),
        "DEDUP_NAMESPACE": namespace,
        "DEDUP_CHROME": True,
        "DOWNLOAD_DELAY": 0.01,
        "DOWNLOADER_MIDDLEWARES": {SharedDelayMiddleware: 1_000_000},
    }
    for more in ({}, {"DEDUP_INCREMENTAL": True}, {"DEDUP_FOLLOW": "yield", "DEDUP_AUDIT": 1.0}):
        done = crawl(pages, **settings, **more)
        assert done.stats["dedup/pages"] >= 4
        assert "dedup/unjudged/index" not in done.stats
    assert denied(server) == []


@pytest.mark.parametrize("heir", [slow("all"), "rest"])
def test_workers_need_no_more_than_the_documented_rights(server: Server, tmp_path: Path, heir: str) -> None:
    address = let(server, "shingleback/site", *LINES[:2])
    with serve(Hosts(contents=8)) as site:
        settings = {"DEDUP_INDEX": address, "DEDUP_HEIR": heir}
        workers = [Worker(site, tmp_path, f"{number}/2", **settings) for number in (1, 2)]
        assert [worker.wait(LIMIT) for worker in workers] == [0, 0]
    assert set(kept(tmp_path)) == set(range(site.contents))
    assert denied(server) == []


@driven
async def test_a_user_of_other_keys_can_not_touch_an_index(server: Server) -> None:
    server.client.execute_command("ACL", "SETUSER", "crawler", "reset", "on", ">secret", "~other:*", "+@all")
    with pytest.raises(IndexUnavailableError, match=r"(?i)permission"):
        async with opened(f"unix://crawler:secret@{server.socket}"):
            pass
    assert server.client.keys() == []


# --- TLS ---------------------------------------------------------------------------------------------


def certificate(
    folder: Path,
    name: str,
    host: str,
    signer: "tuple[x509.Certificate, ec.EllipticCurvePrivateKey] | None",
    days: int,
) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    """Writes NAME.crt and NAME.key; signed by itself without a signer."""
    key = ec.generate_private_key(ec.SECP256R1())
    issuer = (signer[1] if signer else key).public_key()
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    alternatives: list[x509.GeneralName] = [x509.DNSName(host)]
    if host[0].isdigit():
        alternatives = [x509.IPAddress(ipaddress.ip_address(host))]
    others = "content_commitment key_encipherment data_encipherment key_agreement encipher_only decipher_only"
    signs, never = signer is None, dict.fromkeys(others.split(), False)
    usage = x509.KeyUsage(digital_signature=True, key_cert_sign=signs, crl_sign=signs, **never)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(signer[0].subject if signer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=30))
        .not_valid_after(now + datetime.timedelta(days=days))
        .add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        .add_extension(x509.BasicConstraints(ca=signs, path_length=None), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer), critical=False)
        .sign(signer[1] if signer else key, hashes.SHA256())
    )
    (folder / f"{name}.crt").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    (folder / f"{name}.key").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    return made, key


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """Certificates: of the right host, of another one, expired; and two authorities."""
    with tempfile.TemporaryDirectory(prefix="shingleback-") as name:
        folder = Path(name)
        authority = certificate(folder, "authority", "authority", None, 30)
        certificate(folder, "stranger", "stranger", None, 30)
        certificate(folder, "good", "127.0.0.1", authority, 30)
        certificate(folder, "elsewhere", "elsewhere.example.org", authority, 30)
        certificate(folder, "expired", "127.0.0.1", authority, -1)
        yield folder


def secured(folder: Path, served: str, port: int) -> list[str]:
    """The options of a server with a certificate."""
    own = ["--tls-cert-file", str(folder / f"{served}.crt"), "--tls-key-file", str(folder / f"{served}.key")]
    authority = ["--tls-ca-cert-file", str(folder / "authority.crt")]
    return ["--tls-port", str(port), "--tls-auth-clients", "no", *own, *authority]


@pytest.mark.parametrize(
    ("served", "trusted", "opens"),
    [
        ("good", "authority", True),
        ("good", "stranger", False),
        ("elsewhere", "authority", False),
        ("expired", "authority", False),
        ("plain", "authority", False),
    ],
)
@driven
async def test_tls_is_checked(
    folder: Path,
    redis_socket: Path,
    served: str,
    trusted: str,
    opens: bool,
    patience: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if not opens:
        monkeypatch.setattr("dedup.index.redis.client.DEADLINE", 0.3)
    port = free_port()
    options = ["--port", str(port)] if served == "plain" else secured(folder, served, port)
    with running_server("--bind", "127.0.0.1", *options):
        address = f"rediss://127.0.0.1:{port}/0?ssl_ca_certs={folder / f'{trusted}.crt'}"
        index = open_index(address, DETECTOR, namespace="test")
        if opens:
            assert (await index.claim("a", "http://a/", fingerprint_of(1))).status == "new"
        else:
            with pytest.raises(IndexUnavailableError) as caught:
                await index.open()
            assert caught.value.exit_status == 3
        await index.close()


@driven
async def test_tls_of_a_cluster_is_checked(
    folder: Path, redis_socket: Path, patience: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The nodes tell those who ask over TLS the ports for TLS."""
    (port,) = free_ports(1)
    with running_cluster(1, 0, "--tls-cluster", "yes", *secured(folder, "good", port)) as cluster:
        cluster.nodes[0].client.config_set("requirepass", "p@ss")
        address = f"rediss+cluster://:p%40ss@127.0.0.1:{port}?ssl_ca_certs={folder}"
        async with opened(f"{address}/authority.crt") as index:
            assert (await index.claim("a", "http://a/", fingerprint_of(1))).status == "new"
            assert (await index.claim("b", "http://b/", fingerprint_of(1))).of == "http://a/"
        monkeypatch.setattr("dedup.index.redis.client.DEADLINE", 0.3)
        for refused in (f"{address}/stranger.crt", f"{address}/authority.crt".replace("p%40ss", "secret")):
            with pytest.raises(IndexUnavailableError) as error:
                async with opened(refused):
                    pass
            assert "secret" not in str(error.value)


@driven
async def test_an_authority_that_is_not_there_trusts_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dedup.index.redis.client.DEADLINE", 0.3)
    index = open_index("rediss://127.0.0.1:1/0?ssl_ca_certs=/nowhere.crt", DETECTOR)
    with pytest.raises(IndexUnavailableError):
        await index.open()
