"""How `penstock host run` starts a stream host, whatever starts Spark."""

from penstock.platform.launch.launcher import launch_host

__all__ = ["launch_host"]
