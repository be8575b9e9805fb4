"""Deduplication: an id is stored from the first record that has it until it expires."""
