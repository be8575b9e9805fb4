"""Expectation suites: checked in the stream where possible, and on tables by Great Expectations.

Suites are files in `penstock/quality/suites`: `topics/<topic>.yaml` for the records of a topic and
`<folder>/<table>.yaml` for the rows of a table. Reading and compiling suites does not import Great Expectations.
"""
