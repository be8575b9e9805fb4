"""From what Terraform says of a failure to the exception that names it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from penstock.infra.terraform.diagnostics import LOCK_SUMMARY, Diagnostic, lock_holder
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
_STALE_SUMMARIES = (
    "Saved plan is stale",
    "Provider produced inconsistent final plan",
    "Function returned an inconsistent result",
)


class Doing(NamedTuple):
    """A step, and what to raise and advise when it fails."""

    name: str
    error: type[CommandFailedError]
    advice: str


_NAME_A_MIRROR = (
    "Nothing was changed. Name a folder that holds the provider as a mirror, "
    "or let this machine reach the provider's own host."
)
_CORRECT = "Nothing was changed. Correct the configuration and try again."
PREPARE = Doing("Preparing", ConfigurationError, _CORRECT)
VALIDATE = Doing("Checking", ConfigurationError, _CORRECT)
PLAN = Doing("Planning", PlanFailedError, "Nothing was changed. Correct the cause and plan again.")
APPLY = Doing(
    "Applying",
    ApplyFailedError,
    "What was done before that is in the state. Correct the cause and plan again: the plan shows the rest.",
)
READ = Doing(
    "Reading the state",
    StateUnreadableError,
    "Nothing was changed. See that the credentials are still good and that the state is where the backend says.",
)

UNLOCK = Doing("Releasing the lock of", ConfigurationError, "Nothing was changed.")


def failure(doing: Doing, subject: str, diagnostics: Sequence[Diagnostic]) -> TerraformError:
    """Choose the exception for a step that failed on `subject`, an environment's folder."""
    what = f"{doing.name} {subject}"
    errors = [diagnostic for diagnostic in diagnostics if diagnostic.is_error]
    summaries = " ".join(error.summary for error in errors)
    if LOCK_SUMMARY in summaries:
        return StateLockedError(what, lock_holder(errors))
    if any(summary in summaries for summary in _STALE_SUMMARIES):
        reasons = "; ".join(str(error) for error in errors)
        return StalePlanError(
            f"{what}: what the plan was made from has changed since it was shown ({reasons}). Plan again."
        )
    if any(summary in summaries for summary in _PROVIDER_SUMMARIES):
        return ProviderMissingError(what, errors, _NAME_A_MIRROR)
    nameless = Diagnostic("error", "Terraform gave no reason")
    return doing.error(what, errors or [nameless], doing.advice)
