"""Errors of environments, besides those of Terraform."""

from penstock.infra.errors import InfraError


class EnvironmentFailedError(InfraError):
    """Base of the errors of this package."""


class UnknownEnvironmentError(EnvironmentFailedError):
    """There is no environment of that name."""

    exit_code = 2


class NotApprovedError(EnvironmentFailedError):
    """A plan has no approval."""


class NotAppliedError(EnvironmentFailedError):
    """The environment was not applied yet."""


class BackendMissingError(NotAppliedError):
    """An environment with a remote state has no backend configuration."""


class PriceTableError(EnvironmentFailedError):
    """The price table cannot be read, or lacks a price."""


class SettingsFileError(EnvironmentFailedError):
    """The platform's settings file cannot be changed as requested."""
