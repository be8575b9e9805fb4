"""Secrets by name: a setting says where one is, and it is read at the moment in which a client is made.

A place is a file, or `env:NAME` for a variable, which is how clusters hand secrets to their tasks. Nothing here
keeps, prints or logs what it reads.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from penstock.infra.errors import SecretError

VARIABLE = "env:"


def read_secret(place: str, of: str) -> str:
    """Read a secret from its place; `of` says in an error whose it is. SecretError where there is none.

    Of a JSON object, which is what managers of secrets hold for a user, it is the `password`.
    """
    text = _variable(place, of) if place.startswith(VARIABLE) else _file(place, of)
    if not text:
        raise SecretError(f"{of}, named as {place}, is empty. Put its value there.")
    return _password(text, place, of) if text.startswith("{") else text


def _variable(place: str, of: str) -> str:
    name = place.removeprefix(VARIABLE)
    if name not in os.environ:
        raise SecretError(f"{of} is not in a variable {name}. Set it, or name a file that holds it.")
    return os.environ[name].strip()


def _file(place: str, of: str) -> str:
    try:
        return Path(place).expanduser().read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise SecretError(
            f"{of} is not in a file {place} ({getattr(error, 'strerror', None) or 'it is no text'}). Where it is "
            "a managed secret, put its value into a file that only you may read, and name that one."
        ) from None


def _password(text: str, place: str, of: str) -> str:
    try:
        return str(json.loads(text)["password"])
    except (ValueError, KeyError):
        # Not shown, and not as the cause: a parser's error quotes what it read.
        raise SecretError(f"{of}, named as {place}, is JSON without a password in it.") from None
