"""What has to be done now and then so that streams run for months: merging, removing, forgetting."""

from penstock.platform.maintenance.run import Done, maintain

__all__ = ["Done", "maintain"]
