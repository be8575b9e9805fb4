"""A place is a folder or an address: which of the two a text means."""

from pathlib import Path
from urllib.parse import unquote, urlsplit

from penstock.pipelines.errors import StoreError
from penstock.pipelines.store.address import SCHEME, Address, Store

Place = Path | Address
SAME = ("s3a", "s3n")
"""What others call the same."""


def place_of(text: str, store: Store | None = None) -> Place:
    """Where a text says that tables lie: a path, or `s3://bucket/prefix`. StoreError for any other address."""
    if "://" not in text:
        return Path(text)
    scheme, _, rest = text.partition("://")
    if scheme == "file":
        return Path(unquote(urlsplit(text).path))
    if scheme not in (SCHEME, *SAME) or not rest.strip("/"):
        raise StoreError(text, f"tables lie in a folder or in {SCHEME}://bucket/prefix, and in nothing else")
    return Address(f"{SCHEME}://{rest.rstrip('/')}", store or Store())


def place_below(warehouse: Place, text: str) -> Place:
    """Where a text of a pipeline means: an address or a path of its own, or one below the warehouse.

    An address may be of any kind that Delta's library opens; it is reached as the warehouse is.
    """
    if "://" in text:
        return Address(text, warehouse.store if isinstance(warehouse, Address) else Store())
    return Path(text) if Path(text).is_absolute() else warehouse / text
