"""The audit: checks that every record is accounted for and that results match their records.

Comparison is separate from I/O: differences are found by pure functions over Arrow tables and dataclasses.
`checks` has a module for each check, `runner` runs them and reports their verdicts.
"""
