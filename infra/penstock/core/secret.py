"""Secrets by reference: a setting names a file or a variable, which is read when a client is created.

A reference is a path, or `env:NAME` for an environment variable. This module never stores, prints or logs a secret.
"""

import json
import os
from pathlib import Path

from penstock.core.errors import SecretError

ENV_PREFIX = "env:"


def read_secret(reference: str, description: str) -> str:
    """Return a secret; raise SecretError, which contains the description, if it cannot be read.

    The secret in a JSON object, the format of secret managers, is its `password`.
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
        # Hide the cause: the error of a parser quotes its input.
        raise SecretError(f"{description}, named as {reference}, is JSON without a password in it.") from None
