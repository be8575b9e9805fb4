"""Certificates and secrets of a local cluster."""

from __future__ import annotations

import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from penstock.infra.local.certificates import VALIDITY, make_certificates
from penstock.infra.local.private_files import read_or_create_secret, write_private_file

NOON = datetime(2026, 11, 18, 12, tzinfo=UTC)


def read_certificate(path: Path) -> x509.Certificate:
    return x509.load_pem_x509_certificate(path.read_bytes())


def test_the_authority_signs_a_broker_for_this_machine_only(tmp_path: Path) -> None:
    make_certificates(tmp_path, NOON)
    authority, broker = read_certificate(tmp_path / "ca.pem"), read_certificate(tmp_path / "broker.crt")
    broker.verify_directly_issued_by(authority)
    names = broker.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["localhost"]
    assert [str(address) for address in names.get_values_for_type(x509.IPAddress)] == ["127.0.0.1"]
    assert broker.subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value == "penstock-broker"
    assert not broker.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    assert broker.not_valid_before_utc < NOON < broker.not_valid_after_utc <= NOON + VALIDITY


def test_the_key_of_the_authority_is_not_stored(tmp_path: Path) -> None:
    make_certificates(tmp_path, NOON)
    public = read_certificate(tmp_path / "ca.pem").public_key()
    assert isinstance(public, ec.EllipticCurvePublicKey)
    keys = [path for path in tmp_path.iterdir() if b"PRIVATE KEY" in path.read_bytes()]
    assert {path.name for path in keys} == {"broker.key", "broker.pem"}
    assert read_certificate(tmp_path / "broker.crt").public_key() != public


def test_certificates_are_created_once(tmp_path: Path) -> None:
    make_certificates(tmp_path, NOON)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    make_certificates(tmp_path, NOON + timedelta(days=1))
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    assert {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()} == {0o600}


def test_each_secret_is_created_once_and_is_unique(tmp_path: Path) -> None:
    first = read_or_create_secret(tmp_path / "one")
    assert read_or_create_secret(tmp_path / "one") == first != read_or_create_secret(tmp_path / "two")
    assert len(first) >= 32


def test_a_private_file_is_replaced_atomically(tmp_path: Path) -> None:
    write_private_file(tmp_path / "deep" / "file", "one")
    write_private_file(tmp_path / "deep" / "file", b"two")
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["file"]
    assert (tmp_path / "deep" / "file").read_text() == "two"
