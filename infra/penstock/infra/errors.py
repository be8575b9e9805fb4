"""Everything that can go wrong in this package, in one hierarchy.

Each error is one sentence or two: what was tried, with which value, and the way out.
"""

from penstock.core.errors import PenstockError


class InfraError(PenstockError):
    """Base of every error that this package raises on purpose."""


class JavaMissingError(InfraError):
    """No Java of the needed version was found."""


class JarError(InfraError):
    """The jars do not match the lock."""


class JarLockError(JarError):
    """The lock of the jars cannot be read, or lacks an entry."""


class JarDownloadError(JarError):
    """Jars could not be downloaded; complete ones are kept."""


class JarMismatchError(JarError):
    """The SHA-256 of a jar differs from the lock; the jar was discarded."""


class PortInUseError(InfraError):
    """A port that a server needs is already in use."""


class BrokerError(InfraError):
    """The broker's folder could not be prepared, or the broker does not answer."""


class ManagedProcessError(InfraError):
    """Base of errors about programs of the process manager."""


class ProcessManagerError(ManagedProcessError):
    """The process manager cannot be started, reached or stopped."""


class ProgramsNotReadyError(ManagedProcessError):
    """Programs were started but did not become ready; the message has the end of their logs."""


class BootstrapError(InfraError):
    """The checkout could not be set up."""
