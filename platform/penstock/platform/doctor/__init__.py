"""What a person asks when something does not work: is it installed, locked, writable, written right, reachable."""

from penstock.platform.doctor.finding import Finding
from penstock.platform.doctor.installed import installed
from penstock.platform.doctor.reachable import reachable
from penstock.platform.doctor.usable import usable

__all__ = ["Finding", "installed", "reachable", "usable"]
