"""What can go wrong while Terraform's local programs are started and ended."""

from penstock.infra.errors import InfraError


class LocalEnvironmentError(InfraError):
    """A program of the local environment did not do what it was asked to."""


class ProgramFailedError(LocalEnvironmentError):
    """A program ended while it was being started."""


class ActionRequestError(LocalEnvironmentError):
    """What Terraform handed over cannot be understood."""
