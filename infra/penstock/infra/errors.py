"""Everything that can go wrong in this package, in one hierarchy.

Each error is one sentence or two: what was tried, with which value, and the way out.
"""

from penstock.core.errors import PenstockError


class InfraError(PenstockError):
    """Base of every error that this package raises on purpose."""


class JavaMissingError(InfraError):
    """No Java of the needed version was found."""


class JarError(InfraError):
    """The jars are not as the lock says they should be."""


class JarLockError(JarError):
    """The lock of the jars cannot be read, or does not hold what was asked of it."""


class JarDownloadError(JarError):
    """Jars could not be fetched; those that arrived whole are kept, nothing else."""


class JarMismatchError(JarError):
    """A jar's SHA-256 is not the one in the lock; the jar was not kept."""


class PortInUseError(InfraError):
    """A port that a server is to listen on is already in use."""


class BrokerError(InfraError):
    """The broker's folder could not be prepared, or the broker does not answer."""


class ManagedProcessError(InfraError):
    """Base of what goes wrong with the programs that the process manager keeps."""


class ProcessManagerError(ManagedProcessError):
    """The process manager cannot be started, reached or stopped."""


class ProgramsNotReadyError(ManagedProcessError):
    """Programs were started and did not become ready; the end of their logs is part of the message."""


class BootstrapError(InfraError):
    """The checkout could not be made ready to run."""
