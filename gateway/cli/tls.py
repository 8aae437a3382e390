"""`gateway tls`: a certificate for trying the SMTP door out. It is nobody's word but the machine's own."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gateway.cli import options, printing
from gateway.cli.printing import fail
from gateway.cli.setup import settings_of

if TYPE_CHECKING:
    from datetime import datetime

    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.x509 import Certificate, GeneralName

CERTIFICATE, KEY = "gateway-cert.pem", "gateway-key.pem"
LOOPBACK = ("127.0.0.1", "::1")


def self_signed(
    folder: Annotated[
        Path, typer.Option("--dir", metavar="DIR", file_okay=False, help="Where certificate and key are put.")
    ] = Path(),
    names: Annotated[
        list[str] | None,
        typer.Option(
            "--name", metavar="NAME", help="A name or address that clients call the gateway by; may be repeated."
        ),
    ] = None,
    days: Annotated[int, typer.Option("--days", min=1, max=3650, help="How long it is valid, in days.")] = 90,
    force: Annotated[bool, typer.Option("--force", help="Replace files that are there.")] = False,
    config: options.Config = None,
    as_json: options.Json = False,
) -> None:
    """Make a certificate that vouches for itself, to try the SMTP door out; for real mail take one that clients trust.

    It is good for HOSTNAME, localhost, the loopback addresses and every --name. Clients must be told to trust the file.
    Only its owner can read the key.
    """
    given = list(dict.fromkeys([settings_of(config).hostname, "localhost", *(names or ())]))
    certificate, key = folder.absolute() / CERTIFICATE, folder.absolute() / KEY
    for path in (certificate, key):
        if path.exists() and not force:
            fail(f"{path} is there already; --force replaces it")
    try:
        pem, secret = made(given, days)
        folder.mkdir(parents=True, exist_ok=True)
        _write(key, secret, 0o600)
        _write(certificate, pem, 0o644)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--name") from None
    except OSError as error:
        fail(f"{folder} cannot be written to: {error.strerror}")
    if as_json:
        printing.document({"certificate": str(certificate), "key": str(key), "names": given})
        return
    printing.line("a certificate for trying out, signed by nobody but itself", "good")
    printing.pairs(
        [
            ("names", ", ".join([*given, *LOOPBACK])),
            ("valid", f"{days} days"),
            ("next", f"export GATEWAY_TLS_CERT={certificate} GATEWAY_TLS_KEY={key} GATEWAY_SMTP_BIND=127.0.0.1:1587"),
        ]
    )


def _write(path: Path, data: bytes, mode: int) -> None:
    """Write a file whose mode is right from its first byte on."""
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        file.write(data)


def made(names: list[str], days: int) -> tuple[bytes, bytes]:
    """Certificate and key in PEM. Raises ValueError for what is no name."""
    from datetime import UTC, datetime, timedelta

    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    now = datetime.now(UTC)
    signed = _signed(key, names, now - timedelta(minutes=5), now + timedelta(days=days))
    return signed.public_bytes(serialization.Encoding.PEM), key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _signed(key: "EllipticCurvePrivateKey", names: list[str], since: "datetime", until: "datetime") -> "Certificate":
    """A certificate for a server that may sign no other (RFC 5280 4.2)."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0][:64])])
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(since)
        .not_valid_after(until)
        .add_extension(x509.SubjectAlternativeName([_general(name) for name in [*names, *LOOPBACK]]), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
    return builder.sign(key, hashes.SHA256())


def _general(name: str) -> "GeneralName":
    """A name as a certificate has it. Raises ValueError."""
    import ipaddress

    from cryptography import x509

    from gateway.core.address import AddressError, domain_of

    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        pass
    try:
        return x509.DNSName(domain_of(name))
    except AddressError as error:
        msg = f"{name!a}: {error.why}"
        raise ValueError(msg) from None
