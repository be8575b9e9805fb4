"""Encodings of records, and rules for changes of a contract and for unknown fields."""

from typing import Literal

RecordEncoding = Literal["json", "avro"]
CompatibilityMode = Literal["none", "backward", "forward", "full"]
UnknownFieldPolicy = Literal["ignore", "keep", "refuse"]
"""What happens to a field that the contract does not declare: it is ignored, kept as JSON text, or refused."""
UNKNOWN_FIELDS_COLUMN = "unknown_fields"
"""The column of a stream that holds unknown fields, as the text of a JSON object. It is null without any."""
