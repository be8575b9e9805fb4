"""Errors of running Terraform, in one hierarchy.

TerraformError
├── EngineMissingError      no Terraform to run
├── EngineTooOldError       one that is older than 1.6
├── ProviderMissingError    a provider can neither be found nor downloaded
├── ProviderHashError       a provider is not the released package
├── CommandFailedError      Terraform failed; has its diagnostics
│   ├── ConfigurationError      the HCL or a variable is wrong
│   ├── PlanFailedError         nothing was changed
│   ├── ApplyFailedError        something may have been changed
│   └── StateUnreadableError    it is unknown what was applied
├── StateLockedError        another process is changing this environment
├── TerraformTimeoutError   a command exceeded its timeout and was stopped
├── StalePlanError          the state changed after the plan was shown
├── UnknownPlanError        no such saved plan, or not the one that was shown
└── OutputError             an output is missing or has another form
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from penstock.infra.errors import InfraError

if TYPE_CHECKING:
    from penstock.infra.terraform.diagnostics import Diagnostic, StateLockHolder


class TerraformError(InfraError):
    """Base of the errors of this package."""


class EngineMissingError(TerraformError):
    """No Terraform was found, neither the wheel nor a program."""


class EngineTooOldError(TerraformError):
    """The Terraform program is too old for these folders."""


class CommandFailedError(TerraformError):
    """Terraform failed; `diagnostics` has its errors."""

    def __init__(self, operation: str, diagnostics: Sequence[Diagnostic], advice: str) -> None:
        self.operation = operation
        self.diagnostics = tuple(diagnostics)
        self.advice = advice
        reasons = "\n".join(f"  {diagnostic}" for diagnostic in self.diagnostics)
        super().__init__(f"{operation} failed:\n{reasons}\n{advice}")

    @property
    def resources(self) -> tuple[str, ...]:
        """The distinct addresses that the diagnostics name, in order."""
        return tuple(dict.fromkeys(d.address for d in self.diagnostics if d.address))


class ConfigurationError(CommandFailedError):
    """The HCL or a variable's value is invalid; nothing was changed."""


class ProviderMissingError(CommandFailedError):
    """A provider is neither in a mirror nor downloadable; nothing was changed."""


class ProviderHashError(TerraformError):
    """A provider is not the released package, or its hash is not known; it did not run."""


class PlanFailedError(CommandFailedError):
    """Planning failed; nothing was changed."""


class ApplyFailedError(CommandFailedError):
    """Some changes may have been applied; the state has them, and a new plan shows the rest."""


class StateUnreadableError(CommandFailedError):
    """The state could not be read, so it is unknown what was applied."""


class StateLockedError(TerraformError):
    """Another process holds the state lock; nothing was changed."""

    def __init__(self, operation: str, holder: StateLockHolder | None) -> None:
        self.holder = holder
        holder_text = f" by {holder}" if holder else ""
        super().__init__(
            f"{operation}: the state is locked{holder_text}. Wait until that ends. If no process "
            "works on it any more, release the lock with its ID (unlock)."
        )


class TerraformTimeoutError(TerraformError):
    """A command exceeded its timeout and was stopped."""

    def __init__(self, operation: str, timeout_s: float, unfinished: Sequence[str], was_killed: bool) -> None:
        self.timeout_s = timeout_s
        self.unfinished = tuple(unfinished)
        self.was_killed = was_killed
        progress = f"; at work on {', '.join(unfinished)}" if unfinished else ""
        outcome = (
            "It did not stop when asked and was killed: look for a lock left behind."
            if was_killed
            else "It stopped in order, and its state is whole."
        )
        super().__init__(
            f"{operation} was not done after {timeout_s:g} s{progress}. {outcome} Plan again to see what is left."
        )


class StalePlanError(TerraformError):
    """The state or the inputs of a plan changed after it was shown."""


class UnknownPlanError(TerraformError):
    """A saved plan does not exist, or its file is not the one that was shown."""


class OutputError(TerraformError):
    """An output is missing or has the wrong type."""
