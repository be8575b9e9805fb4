"""Metadata of fields of stored parts."""

OMITTED_AT_DEFAULT = {"added": True}
"""Metadata of a field that is not stored at its default value, so that older fingerprints stay valid."""
