"""What a person asks when something does not work: is it installed, locked, writable, reachable."""

from penstock.platform.doctor.finding import Finding
from penstock.platform.doctor.installed import installed
from penstock.platform.doctor.reachable import reachable

__all__ = ["Finding", "installed", "reachable"]
