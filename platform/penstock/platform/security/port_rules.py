"""How a declared listener names its port: a setting, a number, a place in a row of ports, or any free port."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

from penstock.infra.ports import read_first_ephemeral_port


class PortRule(ABC):
    """Which ports a listener may use; its text is for a table."""

    @abstractmethod
    def allows(self, port: int, known_ports: Mapping[str, int]) -> bool:
        """Return whether a port is meant; `known_ports` has the values of settings and variables."""


@dataclass(frozen=True, slots=True)
class SettingPort(PortRule):
    """The port of a setting or of a variable of an environment; with a row, also those that follow at an offset."""

    setting: str
    first_offset: int = 0
    last_offset: int = 0

    def allows(self, port: int, known_ports: Mapping[str, int]) -> bool:
        """Return whether the port is the setting's, or within the offsets."""
        base = known_ports.get(self.setting)
        return base is not None and self.first_offset <= port - base <= self.last_offset

    def __str__(self) -> str:
        if not self.last_offset:
            return f"`{self.setting}`"
        offsets = str(self.first_offset)
        if self.last_offset != self.first_offset:
            offsets += f" to {self.last_offset}"
        return f"`{self.setting}` + {offsets}"


@dataclass(frozen=True, slots=True)
class FixedPort(PortRule):
    """A port that no setting changes."""

    number: int

    def allows(self, port: int, known_ports: Mapping[str, int]) -> bool:
        """Return whether it is this port."""
        return port == self.number

    def __str__(self) -> str:
        return str(self.number)


@dataclass(frozen=True, slots=True)
class AnyFreePort(PortRule):
    """A port that the system picks at each start; never one that a server has by default."""

    def allows(self, port: int, known_ports: Mapping[str, int]) -> bool:
        """Return whether the system gives this port to programs that ask for any."""
        return port >= read_first_ephemeral_port()

    def __str__(self) -> str:
        return "any free"
