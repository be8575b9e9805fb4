"""What can go wrong with an environment, beside what Terraform itself says."""

from penstock.infra.errors import InfraError


class EnvironmentFailedError(InfraError):
    """Base of what this package raises on purpose."""


class UnknownEnvironmentError(EnvironmentFailedError):
    """No environment has that name."""

    exit_code = 2


class NotApprovedError(EnvironmentFailedError):
    """A plan was to be applied that nobody has approved."""


class NotAppliedError(EnvironmentFailedError):
    """Something was asked of an environment that is not there yet."""


class BackendMissingError(NotAppliedError):
    """An environment keeps its state elsewhere, and nobody has said where."""


class PriceTableError(EnvironmentFailedError):
    """The price table cannot be read, or lacks a price."""


class SettingsFileError(EnvironmentFailedError):
    """The platform's settings file cannot be changed as asked."""
