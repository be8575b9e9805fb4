"""Forgetting a key on request: its state goes from every file, and an account of it stays."""
