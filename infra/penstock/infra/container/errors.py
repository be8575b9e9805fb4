"""What can go wrong when a container starts its program."""

from penstock.infra.errors import InfraError


class ContainerError(InfraError):
    """A container's program cannot be started, or is not well."""
