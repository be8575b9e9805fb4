"""What has to be done now and then so that streams run for months: merging, removing, forgetting."""

from penstock.platform.maintenance.maintenance_run import MaintenanceAction, run_maintenance

__all__ = ["MaintenanceAction", "run_maintenance"]
