"""Parses the bytes of a topic into records, and validates them."""
