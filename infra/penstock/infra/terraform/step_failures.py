"""Maps failures of Terraform to exceptions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from penstock.infra.terraform.diagnostics import STATE_LOCK_SUMMARY, Diagnostic, find_lock_holder
from penstock.infra.terraform.errors import (
    ApplyFailedError,
    CommandFailedError,
    ConfigurationError,
    PlanFailedError,
    ProviderMissingError,
    StalePlanError,
    StateLockedError,
    StateUnreadableError,
    TerraformError,
)

_PROVIDER_SUMMARIES = (
    "Failed to query available provider packages",
    "Failed to install provider",
    "Required plugins are not installed",
    "Inconsistent dependency lock file",
    "Failed to load plugin schemas",
)
_STALE_PLAN_SUMMARIES = (
    "Saved plan is stale",
    "Provider produced inconsistent final plan",
    "Function returned an inconsistent result",
)


class TerraformStep(NamedTuple):
    """A step, with the exception and the advice for its failure."""

    name: str
    error_type: type[CommandFailedError]
    advice: str


_MIRROR_ADVICE = (
    "Nothing was changed. Name a folder that holds the provider as a mirror, "
    "or let this machine reach the provider's own host."
)
_CONFIGURATION_ADVICE = "Nothing was changed. Correct the configuration and try again."
PREPARE_STEP = TerraformStep("Preparing", ConfigurationError, _CONFIGURATION_ADVICE)
VALIDATE_STEP = TerraformStep("Checking", ConfigurationError, _CONFIGURATION_ADVICE)
PLAN_STEP = TerraformStep(
    "Planning", PlanFailedError, "Nothing was changed. Correct the cause and plan again."
)
APPLY_STEP = TerraformStep(
    "Applying",
    ApplyFailedError,
    "What was done before that is in the state. Correct the cause and plan again: the plan shows the rest.",
)
READ_STATE_STEP = TerraformStep(
    "Reading the state",
    StateUnreadableError,
    "Nothing was changed. See that the credentials are still good and that the state is where the backend says.",
)

UNLOCK_STEP = TerraformStep("Releasing the lock of", ConfigurationError, "Nothing was changed.")


def classify_failure(step: TerraformStep, subject: str, diagnostics: Sequence[Diagnostic]) -> TerraformError:
    """Return the exception for a step that failed on `subject`, an environment's folder."""
    operation = f"{step.name} {subject}"
    errors = [diagnostic for diagnostic in diagnostics if diagnostic.is_error]
    summaries = " ".join(error.summary for error in errors)
    if STATE_LOCK_SUMMARY in summaries:
        return StateLockedError(operation, find_lock_holder(errors))
    if any(summary in summaries for summary in _STALE_PLAN_SUMMARIES):
        reasons = "; ".join(str(error) for error in errors)
        return StalePlanError(
            f"{operation}: what the plan was made from has changed since it was shown ({reasons}). Plan again."
        )
    if any(summary in summaries for summary in _PROVIDER_SUMMARIES):
        return ProviderMissingError(operation, errors, _MIRROR_ADVICE)
    unknown_error = Diagnostic("error", "Terraform gave no reason")
    return step.error_type(operation, errors or [unknown_error], step.advice)
