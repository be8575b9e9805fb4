"""The type of settings that name a secret, and addresses that must hold none.

A reference is a path, `file:PATH` or `env:NAME`. The secret itself is no value of a setting: settings are shown,
stored with programs, and passed on as variables.
"""

import re
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator

from penstock.core.secret import MASK

_LOGIN = re.compile(r"(://[^/@\s:]*):[^/\s]*@")
_QUERY_PASSWORD = re.compile(r"([?&]password=)[^&\s]+")


class SecretReferenceMark:
    """Marks the settings that name a secret."""


def mask_passwords(text: str) -> str:
    """Return a text with the passwords of the addresses in it masked."""
    return _QUERY_PASSWORD.sub(rf"\1{MASK}", _LOGIN.sub(rf"\1:{MASK}@", text))


def _check_reference(text: str) -> str:
    if "://" in text:
        raise ValueError(
            "an address is no reference. Such an address is a secret itself: write it into a file that only you "
            "can read, and set file:PATH, or put it into a variable and set env:NAME"
        )
    return text


def _check_address(text: str | None) -> str | None:
    if text and "://" in text and "@" in urlsplit(text).netloc:
        raise ValueError(
            "an address must not have a log-in in it, as settings are shown. Remove what is before the @, and name "
            "the log-in by the setting for its secret"
        )
    return text


SecretReference = Annotated[str, AfterValidator(_check_reference), SecretReferenceMark()]
"""A setting that names a secret; empty for none."""

PublicAddress = Annotated[str, AfterValidator(_check_address)]
"""An address without a log-in."""
