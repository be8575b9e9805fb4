"""Certificates for a cluster on this machine: made on the spot, signed by an authority that forgets its key.

Brokers show one to clients, and to each other as their name. Because the authority's key is never written
down, nobody can make another one that they would trust.
"""

from __future__ import annotations

import ipaddress
from datetime import datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from penstock.infra.local.private import write_private
from penstock.infra.ports import LOCALHOST

BROKER = "penstock-broker"
LASTS = timedelta(days=825)
_EARLIER = timedelta(minutes=5)


def make_certificates(directory: Path, now: datetime) -> None:
    """Write `ca.pem`, and a broker's `broker.crt`, `broker.key` and both in `broker.pem`. Once: they stay."""
    if (directory / "ca.pem").exists():
        return
    authority, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    ca = _certificate("penstock-authority", authority, "penstock-authority", authority, now)
    broker = _certificate(BROKER, key, "penstock-authority", authority, now)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    shown = broker.public_bytes(serialization.Encoding.PEM)
    write_private(directory / "broker.key", private)
    write_private(directory / "broker.crt", shown)
    write_private(directory / "broker.pem", private + shown)
    write_private(directory / "ca.pem", ca.public_bytes(serialization.Encoding.PEM))


def _certificate(
    name: str,
    key: ec.EllipticCurvePrivateKey,
    issuer: str,
    signer: ec.EllipticCurvePrivateKey,
    now: datetime,
) -> x509.Certificate:
    signs = key is signer
    places = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address(LOCALHOST))]
    uses = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    made = (
        x509.CertificateBuilder()
        .subject_name(_named(name))
        .issuer_name(_named(issuer))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _EARLIER)
        .not_valid_after(now + LASTS)
        .add_extension(x509.BasicConstraints(ca=signs, path_length=0 if signs else None), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
    if not signs:
        made = made.add_extension(x509.SubjectAlternativeName(places), critical=False)
        made = made.add_extension(x509.ExtendedKeyUsage(uses), critical=False)
    return made.sign(signer, hashes.SHA256())


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
