"""References to secrets in files, variables and JSON."""

from __future__ import annotations

import copy
import json
import logging
import pickle
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.core.errors import SecretError
from penstock.core.secret import Secret, read_secret


def test_a_secret_is_read_from_a_variable_or_from_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ITS_NAME", "it\n")
    assert read_secret("env:ITS_NAME", "It") == Secret("it")
    (tmp_path / "managed").write_text('{"username": "host", "password": "managed"}')
    for reference in (str(tmp_path / "managed"), f"file:{tmp_path / 'managed'}"):
        assert read_secret(reference, "It").reveal() == "managed"


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


def test_a_secret_shows_itself_nowhere(caplog: pytest.LogCaptureFixture) -> None:
    secret = Secret("canary-5e4c")
    logging.getLogger("test").warning("%s %r", secret, {"key": secret})
    shown = f"{secret} {secret!r} {secret:>20} {[secret]} {json.dumps(secret, default=str)} {caplog.text}"
    assert "canary" not in shown
    assert not hasattr(secret, "__dict__")


@pytest.mark.parametrize("write", [pickle.dumps, copy.deepcopy, json.dumps])
def test_a_secret_cannot_be_written(write: Callable[[Secret], object]) -> None:
    with pytest.raises((SecretError, TypeError)):
        write(Secret("canary-5e4c"))


def test_equal_secrets_are_equal() -> None:
    assert Secret("a") == Secret("a")
    assert Secret("a") != Secret("b")
    assert len({Secret("a"), Secret("a"), Secret("b")}) == 2
