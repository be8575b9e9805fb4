"""Reads the tables of a warehouse: by name, by SQL, as of a batch or time, and as changes."""
