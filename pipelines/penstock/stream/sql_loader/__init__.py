"""Pipelines in SQL: one `CREATE STREAM` statement becomes the document that YAML becomes.

`document.py` is the entry. The modules import sqlglot, which takes 80 ms: import this package only to read SQL.
"""
