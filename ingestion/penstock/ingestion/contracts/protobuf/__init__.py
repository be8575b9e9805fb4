"""Protobuf: the text of schemas, and messages as the JSON of records."""
