"""Expectations: written once, in a suite; checked in the stream where that can be, and at rest by their library.

Suites are files in `penstock/quality/suites`: `topics/<topic>.yaml` for what is checked while it is read, and
`<folder>/<table>.yaml` for tables. Reading and compiling them loads nothing of Great Expectations.
"""
