"""Encodings of records, and rules for changes of a contract."""

from typing import Literal

RecordEncoding = Literal["json", "avro"]
CompatibilityMode = Literal["none", "backward", "forward", "full"]
