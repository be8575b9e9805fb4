"""References to secrets in files, variables and JSON."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.core.errors import SecretError
from penstock.core.secret import read_secret


def test_a_secret_is_read_from_a_variable_or_from_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ITS_NAME", "it\n")
    assert read_secret("env:ITS_NAME", "It") == "it"
    (tmp_path / "managed").write_text('{"username": "host", "password": "managed"}')
    assert read_secret(str(tmp_path / "managed"), "It") == "managed"


@pytest.mark.parametrize("content", ['{"passwort": "canary"}', '{"canary', '{"a": ["canary"]}'])
def test_an_invalid_secret_is_refused_without_showing_it(content: str, tmp_path: Path) -> None:
    (tmp_path / "it").write_text(content)
    with pytest.raises(SecretError, match="JSON without a password") as raised:
        read_secret(str(tmp_path / "it"), "It")
    assert "canary" not in f"{raised.value}{raised.value.__cause__}"


def test_an_empty_or_missing_secret_is_refused(tmp_path: Path) -> None:
    (tmp_path / "it").write_text("\n")
    with pytest.raises(SecretError, match="is empty"):
        read_secret(str(tmp_path / "it"), "It")
    with pytest.raises(SecretError, match="not in a variable NO_SUCH"):
        read_secret("env:NO_SUCH", "It")
