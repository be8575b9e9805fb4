"""The audit: whether every record is accounted for, and every result is what its records give.

Deciding is apart from fetching: each check is a pure function over Arrow tables and data classes that says where
something differs; `audit` fetches, asks the checks, and reports.
"""
