"""Formats of records: one module for each format, found by discovery.

To add a format, add a module with a class that derives from `RecordFormat`. Define `keyword`, the word after
`encoding` in a contract, and what mypy names. Nothing lists the formats by hand.

A format whose records are JSON with something around it, or can be written as JSON, derives from `JsonBasedFormat`.
It defines how a value becomes the JSON of a record, and back. The judge of records does everything else, in
producers and in streams.
"""
