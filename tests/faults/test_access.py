"""Least rights and TLS: an index needs few commands, and trusts no certificate that it should not."""

import datetime
import ipaddress
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from dedup.errors import IndexUnavailableError
from dedup.index import open_index
from tests.support import ROOT
from tests.support.cluster import free_ports, running_cluster
from tests.support.coroutines import driven
from tests.support.fingerprints import fingerprint_of
from tests.support.redis import Server, running_server
from tests.support.stores import DETECTOR, opened

#: What docs/reliability.md tells an operator to set.
LEAST = (
    "~shingleback:{test}:* resetchannels -@all +evalsha +script|load +info +get +mget +getrange +strlen +set +mset +setrange "
    "+append +bitop +del +incr +exists "
    "+hset +hget +hgetall +hexists +hlen +hdel +zadd +zrem +zscore +zcard +zrangebyscore +time"
)


@driven
async def test_an_index_needs_no_more_than_the_documented_rights(server: Server) -> None:
    server.client.execute_command("ACL", "SETUSER", "crawler", "reset", "on", ">secret", *LEAST.split())
    server.client.execute_command("ACL", "LOG", "RESET")
    address = f"unix://crawler:secret@{server.socket}"
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
    assert server.client.zcard("shingleback:{test}:hosts") == 1  # what was learned of a host is stored, too
    denied = [entry["object"] for entry in server.client.acl_log() if "shingleback" in str(entry)]
    assert denied == []


def test_those_rights_are_the_documented_ones() -> None:
    text = ROOT.joinpath("docs/reliability.md").read_text()
    written = text.partition("ACL SETUSER crawler")[2].partition("```")[0]
    assert set(LEAST.split()) <= set(written.replace("\\\n", " ").replace("NAMESPACE", "test").split())


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
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    alternatives: list[x509.GeneralName] = [x509.DNSName(host)]
    if host[0].isdigit():
        alternatives = [x509.IPAddress(ipaddress.ip_address(host))]
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(signer[0].subject if signer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=30))
        .not_valid_after(now + datetime.timedelta(days=days))
        .add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        .add_extension(x509.BasicConstraints(ca=signer is None, path_length=None), critical=True)
        .sign(signer[1] if signer else key, hashes.SHA256())
    )
    (folder / f"{name}.crt").write_bytes(made.public_bytes(serialization.Encoding.PEM))
    (folder / f"{name}.key").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    return made, key


@pytest.fixture
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


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


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
    folder: Path, redis_socket: Path, served: str, trusted: str, opens: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dedup.index.redis.client.DEADLINE", 1.0)
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
    folder: Path, redis_socket: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The nodes tell those who ask over TLS the ports for TLS."""
    monkeypatch.setattr("dedup.index.redis.client.DEADLINE", 1.0)
    (port,) = free_ports(1)
    with running_cluster(1, 0, "--tls-cluster", "yes", *secured(folder, "good", port)) as cluster:
        cluster.nodes[0].client.config_set("requirepass", "p@ss")
        address = f"rediss+cluster://:p%40ss@127.0.0.1:{port}?ssl_ca_certs={folder}"
        async with opened(f"{address}/authority.crt") as index:
            assert (await index.claim("a", "http://a/", fingerprint_of(1))).status == "new"
            assert (await index.claim("b", "http://b/", fingerprint_of(1))).of == "http://a/"
        for refused in (f"{address}/stranger.crt", f"{address}/authority.crt".replace("p%40ss", "secret")):
            with pytest.raises(IndexUnavailableError) as error:
                async with opened(refused):
                    pass
            assert "secret" not in str(error.value)


@driven
async def test_an_authority_that_is_not_there_trusts_nobody() -> None:
    index = open_index("rediss://127.0.0.1:1/0?ssl_ca_certs=/nowhere.crt", DETECTOR)
    with pytest.raises(IndexUnavailableError):
        await index.open()
