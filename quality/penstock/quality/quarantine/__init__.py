"""Quarantined records: inspection, repair, replay and discard."""
