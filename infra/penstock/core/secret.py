"""Secrets by name: a setting says where one is, and it is read at the moment in which a client is made.

A place is a file, or `env:NAME` for a variable, which is how clusters hand secrets to their tasks. Nothing here
keeps, prints or logs what it reads.
"""

import json
import os
from pathlib import Path

from penstock.core.errors import SecretError

ENV_PREFIX = "env:"


def read_secret(reference: str, description: str) -> str:
    """Read a secret from its place; `of` says in an error whose it is. SecretError where there is none.

    Of a JSON object, which is what managers of secrets hold for a user, it is the `password`.
    """
    text = (
        _read_variable(reference, description)
        if reference.startswith(ENV_PREFIX)
        else _read_secret_file(reference, description)
    )
    if not text:
        raise SecretError(f"{description}, named as {reference}, is empty. Put its value there.")
    return _extract_password(text, reference, description) if text.startswith("{") else text


def _read_variable(reference: str, description: str) -> str:
    name = reference.removeprefix(ENV_PREFIX)
    if name not in os.environ:
        raise SecretError(f"{description} is not in a variable {name}. Set it, or name a file that holds it.")
    return os.environ[name].strip()


def _read_secret_file(reference: str, description: str) -> str:
    try:
        return Path(reference).expanduser().read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise SecretError(
            f"{description} is not in a file {reference} ({getattr(error, 'strerror', None) or 'it is no text'}). "
            "Where it is a managed secret, put its value into a file that only you may read, and name that one."
        ) from None


def _extract_password(text: str, reference: str, description: str) -> str:
    try:
        return str(json.loads(text)["password"])
    except (ValueError, KeyError):
        # Not shown, and not as the cause: a parser's error quotes what it read.
        raise SecretError(f"{description}, named as {reference}, is JSON without a password in it.") from None
