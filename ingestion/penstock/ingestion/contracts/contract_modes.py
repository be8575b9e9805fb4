"""Rules of a contract: for its changes, for unknown fields, and for deleted rows."""

from typing import Literal

ValueForm = Literal["json", "avro"]
"""The form in which a reader gets the values of a record: as JSON, or as Avro."""
CompatibilityMode = Literal["none", "backward", "forward", "full"]
UnknownFieldPolicy = Literal["ignore", "keep", "refuse"]
"""What happens to a field that the contract does not declare: it is ignored, kept as JSON text, or refused."""
DeletePolicy = Literal["ignore", "keep"]
"""What happens to the event of a deleted row: it is counted as filtered, or is a record with the row before it."""
EnvelopeFields = tuple[tuple[str, str], ...]
"""Fields that are no columns of a changed row, with the path of each in the envelope of its event."""
UNKNOWN_FIELDS_COLUMN = "unknown_fields"
"""The column of a stream that holds unknown fields, as the text of a JSON object. It is null without any."""
