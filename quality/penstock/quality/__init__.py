"""Expectations, the ledger, the audit and the quarantine."""
