"""`gateway tls self-signed`: a certificate that a client takes who was told to, for the names that were asked for."""

import contextlib
import json
import socket
import ssl
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Run


def shaken(certificate: Path, key: Path, name: str) -> None:
    """Shakes hands with a server that has this certificate, as a client that trusts it and calls the server `name`."""
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    server.load_cert_chain(certificate, key)
    client = ssl.create_default_context(cafile=str(certificate))
    client.verify_flags |= ssl.VERIFY_X509_STRICT
    ours, theirs = socket.socketpair()

    def serve() -> None:
        try:
            server.wrap_socket(theirs, server_side=True).close()
        except OSError:
            theirs.close()

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        client.wrap_socket(ours, server_hostname=name).close()
    finally:
        ours.close()
        thread.join(10)


@pytest.mark.parametrize("name", ["gw.example.com", "localhost", "127.0.0.1", "::1", "mail.example.com", "192.0.2.7"])
def test_it_is_good_for_the_gateways_names(run: Run, bare: Path, name: str) -> None:
    result = run("tls", "self-signed", "--dir", "certs", "--name", "mail.example.com", "--name", "192.0.2.7", "--json")

    made = json.loads(result.stdout)
    assert result.exit_code == 0
    shaken(Path(made["certificate"]), Path(made["key"]), name)


def test_it_is_good_for_no_other_name_and_its_key_is_its_owners(run: Run, bare: Path) -> None:
    run("tls", "self-signed")

    assert (bare / "gateway-key.pem").stat().st_mode & 0o777 == 0o600
    with pytest.raises(ssl.SSLCertVerificationError):
        shaken(bare / "gateway-cert.pem", bare / "gateway-key.pem", "other.example.com")


def test_what_is_there_is_replaced_only_by_force(run: Run, bare: Path) -> None:
    run("tls", "self-signed")
    before = (bare / "gateway-cert.pem").read_bytes()

    refused = run("tls", "self-signed")
    kept = (bare / "gateway-cert.pem").read_bytes()
    forced = run("tls", "self-signed", "--force")

    assert refused.exit_code == 1
    assert kept == before
    assert forced.exit_code == 0
    assert (bare / "gateway-cert.pem").read_bytes() != before
    assert "GATEWAY_TLS_CERT=" in forced.stdout


def test_what_is_no_name_is_refused(run: Run) -> None:
    assert run("tls", "self-signed", "--name", "no name").exit_code == 2


def answered(run: Run, act: Callable[[socket.socket], object]) -> str:
    """What `whoami` says of a server on the loopback that does this with its only connection."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"https://127.0.0.1:{listening.getsockname()[1]}"

        def serve() -> None:
            with listening.accept()[0] as connection, contextlib.suppress(OSError):
                act(connection)

        thread = threading.Thread(target=serve)
        thread.start()
        asked = run("whoami", "--url", url, "--key", "gk_live_x")
        thread.join(10)
    assert asked.exit_code == 1
    return asked.stderr


def test_a_certificate_that_is_not_trusted_is_called_that(run: Run, bare: Path) -> None:
    run("tls", "self-signed")
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    server.load_cert_chain(bare / "gateway-cert.pem", bare / "gateway-key.pem")

    said = answered(run, lambda connection: server.wrap_socket(connection, server_side=True).close())

    assert "(its certificate is not trusted: self" in said
    assert "signed certificate)" in said


def test_a_handshake_that_fails_is_told_in_the_words_of_tls(run: Run) -> None:
    def refuse(connection: socket.socket) -> None:
        connection.recv(4096)
        connection.sendall(b"\x15\x03\x03\x00\x02\x02\x28")  # an alert: handshake_failure (RFC 8446, section 6)

    said = answered(run, refuse)

    assert "(TLS: " in said
    assert "handshake failure)" in said
