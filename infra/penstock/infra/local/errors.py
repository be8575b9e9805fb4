"""Errors of starting and stopping the local programs of Terraform."""

from penstock.infra.errors import InfraError


class LocalEnvironmentError(InfraError):
    """A program of the local environment failed to do what was requested."""


class ProgramFailedError(LocalEnvironmentError):
    """A program exited during startup."""


class ActionRequestError(LocalEnvironmentError):
    """A request of Terraform is invalid."""
