"""How a stream host is begun: `penstock host run`, with the same word to end it, whatever begins Spark."""

from penstock.platform.launch.launcher import launch_host

__all__ = ["launch_host"]
