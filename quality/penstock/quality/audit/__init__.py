"""The audit: checks that every record is accounted for and that results match their records.

Comparison is separate from I/O: each check is a pure function over Arrow tables and dataclasses that yields
differences. `runner` runs the checks and reports their verdicts.
"""
