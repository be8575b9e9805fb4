"""Periodic upkeep: merging small files, and removing files, rows and events whose retention has passed."""

from penstock.platform.maintenance.maintenance_run import MaintenanceAction, run_maintenance

__all__ = ["MaintenanceAction", "run_maintenance"]
