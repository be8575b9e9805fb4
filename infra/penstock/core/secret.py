"""Secrets by reference: a setting names a file or a variable, which is read when a client is created.

A reference is a path, `file:PATH`, or `env:NAME` for an environment variable. A secret that was read is a `Secret`,
which shows itself nowhere. Only `reveal()` returns its text, where a client takes it.
"""

import hmac
import json
import os
from pathlib import Path
from typing import NoReturn

from penstock.core.errors import SecretError

ENV_PREFIX = "env:"
FILE_PREFIX = "file:"
MASK = "***"


class Secret:
    """A text that is not printed, logged, written as JSON or pickled."""

    __slots__ = ("__text",)

    def __init__(self, text: str) -> None:
        self.__text = text

    def reveal(self) -> str:
        """Return the text, for the client that needs it."""
        return self.__text

    def __repr__(self) -> str:
        return f"Secret({MASK})"

    def __str__(self) -> str:
        return MASK

    def __format__(self, format_spec: str) -> str:
        return format(MASK, format_spec)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        return hmac.compare_digest(self.__text.encode(), other.reveal().encode())

    def __hash__(self) -> int:
        return hash((Secret, self.__text))

    def __reduce__(self) -> NoReturn:
        raise SecretError("A secret cannot be pickled. Pass its reference, and read it where it is used.")


def show_reference(text: str) -> str:
    """Return a reference for a message; masked if it may be a secret that was put there by mistake."""
    is_reference = text.startswith((ENV_PREFIX, FILE_PREFIX)) or ("/" in text and "://" not in text)
    return text if not text or is_reference else MASK


def read_secret(reference: str, description: str) -> Secret:
    """Return a secret; raise SecretError, which contains the description, if it cannot be read.

    The secret in a JSON object, the format of secret managers, is its `password`.
    """
    text = (
        _read_variable(reference, description)
        if reference.startswith(ENV_PREFIX)
        else _read_secret_file(reference.removeprefix(FILE_PREFIX), description)
    )
    if not text:
        raise SecretError(
            f"{description}, named as {show_reference(reference)}, is empty. Put its value there."
        )
    return Secret(_extract_password(text, reference, description) if text.startswith("{") else text)


def _read_variable(reference: str, description: str) -> str:
    name = reference.removeprefix(ENV_PREFIX)
    if name not in os.environ:
        raise SecretError(f"{description} is not in a variable {name}. Set it, or name a file that holds it.")
    return os.environ[name].strip()


def _read_secret_file(reference: str, description: str) -> str:
    try:
        return Path(reference).expanduser().read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is no text"
        raise SecretError(
            f"{description} is not in a file {show_reference(reference)} ({reason}). "
            "Where it is a managed secret, put its value into a file that only you may read, and name that one."
        ) from None


def _extract_password(text: str, reference: str, description: str) -> str:
    try:
        return str(json.loads(text)["password"])
    except (ValueError, KeyError):
        # Hide the cause: the error of a parser quotes its input.
        raise SecretError(
            f"{description}, named as {show_reference(reference)}, is JSON without a password in it."
        ) from None
