"""The archive: a topic's records in a Delta table, byte for byte, every offset once, every gap explained."""
