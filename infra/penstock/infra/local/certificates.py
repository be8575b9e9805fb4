"""Certificates for a cluster on this machine: generated, and signed by an authority whose key is discarded.

Brokers show one to clients, and to each other as their name. Because the authority's key is never written,
no other certificate can be issued that they would trust.
"""

from __future__ import annotations

import ipaddress
from datetime import datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from penstock.infra.local.private_files import write_private_file
from penstock.infra.ports import LOCALHOST

BROKER_COMMON_NAME = "penstock-broker"
VALIDITY = timedelta(days=825)
_BACKDATING = timedelta(minutes=5)


def make_certificates(directory: Path, now: datetime) -> None:
    """Write `ca.pem`, and a broker's `broker.crt`, `broker.key` and both in `broker.pem`. Once: they stay."""
    if (directory / "ca.pem").exists():
        return
    authority_key, broker_key = (
        ec.generate_private_key(ec.SECP256R1()),
        ec.generate_private_key(ec.SECP256R1()),
    )
    authority_certificate = _build_certificate(
        "penstock-authority", authority_key, "penstock-authority", authority_key, now
    )
    broker_certificate = _build_certificate(
        BROKER_COMMON_NAME, broker_key, "penstock-authority", authority_key, now
    )
    key_pem = broker_key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    certificate_pem = broker_certificate.public_bytes(serialization.Encoding.PEM)
    write_private_file(directory / "broker.key", key_pem)
    write_private_file(directory / "broker.crt", certificate_pem)
    write_private_file(directory / "broker.pem", key_pem + certificate_pem)
    write_private_file(directory / "ca.pem", authority_certificate.public_bytes(serialization.Encoding.PEM))


def _build_certificate(
    name: str,
    key: ec.EllipticCurvePrivateKey,
    issuer: str,
    signer: ec.EllipticCurvePrivateKey,
    now: datetime,
) -> x509.Certificate:
    is_authority = key is signer
    alternative_names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address(LOCALHOST))]
    key_usages = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    builder = (
        x509.CertificateBuilder()
        .subject_name(_common_name(name))
        .issuer_name(_common_name(issuer))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BACKDATING)
        .not_valid_after(now + VALIDITY)
        .add_extension(
            x509.BasicConstraints(ca=is_authority, path_length=0 if is_authority else None), critical=True
        )
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
    if not is_authority:
        builder = builder.add_extension(x509.SubjectAlternativeName(alternative_names), critical=False)
        builder = builder.add_extension(x509.ExtendedKeyUsage(key_usages), critical=False)
    return builder.sign(signer, hashes.SHA256())


def _common_name(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
