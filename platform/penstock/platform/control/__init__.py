"""The control store: what should run, who may write, and a row for every committed batch.

SQLite on one machine, PostgreSQL where hosts are on several. `open_control` brings the schema up to date.
"""

from penstock.platform.control.open_store import control_store_exists, open_control_store
from penstock.platform.control.store import ControlStore

__all__ = ["ControlStore", "control_store_exists", "open_control_store"]
