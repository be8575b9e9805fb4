"""The base of types that Delta has no type for, whose values are stored as text of one form."""

from collections.abc import Callable
from typing import Any, Self

from penstock.ingestion.contracts.field_types.field_type import ParseType
from penstock.ingestion.contracts.field_types.plain_type import PlainType


class StoredTextType(PlainType):
    """A type whose column is a STRING with the text of `to_key_text`."""

    spark_name = "STRING"
    json_name = "string"

    @property
    def stored_converter(self) -> Callable[[Any], Any] | None:
        """A function that returns the text."""
        return self.to_key_text

    @classmethod
    def from_spark_type(cls, _text: str, _parse: ParseType) -> Self | None:
        """Return None: a STRING is a `string`."""
        return None
