"""The control store: desired states of streams, leases, and a row for every committed batch.

SQLite on one machine, PostgreSQL for hosts on several machines. `open_control_store` migrates the schema.
"""

from penstock.platform.control.open_store import control_store_exists, open_control_store
from penstock.platform.control.store import ControlStore

__all__ = ["ControlStore", "control_store_exists", "open_control_store"]
