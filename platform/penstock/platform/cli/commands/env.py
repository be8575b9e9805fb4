"""`penstock env`: plan, approve, apply and inspect environments with Terraform."""

import getpass
from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from penstock.core.files import write_atomically
from penstock.platform.cli.command_context import current_settings
from penstock.platform.cli.command_discovery import Section
from penstock.platform.cli.confirmation import confirm
from penstock.platform.cli.options import complete_names, json_option, yes_option
from penstock.platform.cli.output import format_examples, print_json, print_table
from penstock.platform.cli.steps import StepPrinter
from penstock.platform.errors import SettingsError
from penstock.platform.settings import check_settings, find_root
from penstock.platform.settings.naming import SETTINGS_FILE_NAME

if TYPE_CHECKING:
    from penstock.infra.environments import Environment, EnvironmentCatalog
    from penstock.infra.terraform import ResourceChange, TerraformPlan

SECTION: Section = "Infrastructure and shell"


@click.group(
    name="env",
    short_help="Plan, apply and inspect environments with Terraform",
    epilog=format_examples("penstock env plan local", "penstock env apply local"),
)
def command() -> None:
    """Plan, apply and inspect environments with Terraform.

    Every change is planned and shown before it is applied.
    """


def _list_environments() -> Iterable[str]:
    return _open_catalog().names()


_name = click.argument("name", shell_complete=complete_names(_list_environments))
_engine = click.option(
    "--engine",
    default="",
    help="Terraform to use: embedded, terraform, tofu, or the path of a binary. Default: terraform.engine.",
)


@command.command(name="list", short_help="List the environments", epilog=format_examples("penstock env list"))
@json_option
def list_(as_json: bool) -> None:
    """List the environments."""
    names = _open_catalog().names()
    if as_json:
        print_json(names)
    else:
        print_table(("environment",), [(name,) for name in names])


@command.command(
    short_help="Show the changes to an environment and store the plan",
    epilog=format_examples("penstock env plan local", "penstock env plan aws --json"),
)
@_name
@click.option("--destroy", is_flag=True, help="Plan the removal of all resources.")
@_engine
@json_option
def plan(name: str, destroy: bool, engine: str, as_json: bool) -> int:
    """Show the changes that an apply would make, and store the plan. The exit code is 1 if there are any."""
    terraform_plan = _make_plan(_open_environment(name, engine), destroy)
    _print_plan(terraform_plan, as_json)
    return 0 if terraform_plan.is_empty else 1


@command.command(
    short_help="Approve a stored plan",
    epilog=format_examples("penstock env approve aws 3f1c0a9b7d21"),
)
@_name
@click.argument("plan_id")
@_engine
def approve(name: str, plan_id: str, engine: str) -> None:
    """Approve a stored plan under your user name. Dagster applies approved plans only."""
    from datetime import UTC, datetime

    environment = _open_environment(name, engine)
    _print_plan(environment.load_plan(plan_id), as_json=False)
    approval = environment.approve(plan_id, getpass.getuser(), datetime.now(UTC))
    click.echo(f"plan {approval.plan_id} of {name} approved by {approval.approver}")


@command.command(
    short_help="Apply a plan to an environment",
    epilog=format_examples("penstock env apply local", "penstock env apply aws --plan 3f1c0a9b7d21"),
)
@_name
@click.option("--plan", "plan_id", help="ID of a stored plan. Default: make a new plan and show it.")
@yes_option
@_engine
def apply(name: str, plan_id: str | None, yes: bool, engine: str) -> None:
    """Bring an environment to the state that its folder declares, with a plan that is shown first."""
    environment = _open_environment(name, engine)
    terraform_plan = environment.load_plan(plan_id) if plan_id else _make_plan(environment, destroy=False)
    _confirm_and_apply(environment, terraform_plan, yes)


@command.command(
    short_help="Remove an environment and its data", epilog=format_examples("penstock env destroy local")
)
@_name
@yes_option
@_engine
def destroy(name: str, yes: bool, engine: str) -> None:
    """Remove an environment and all its data."""
    environment = _open_environment(name, engine)
    _confirm_and_apply(environment, _make_plan(environment, destroy=True), yes)


@command.command(
    short_help="Compare an environment with the last apply",
    epilog=format_examples("penstock env drift local"),
)
@_name
@_engine
@json_option
def drift(name: str, engine: str, as_json: bool) -> int:
    """Show how an environment differs from the last apply. The exit code is 1 if it does."""
    with StepPrinter().step(f"compare {name} with the last apply"):
        environment_drift = _open_environment(name, engine).find_drift()
    if as_json:
        print_json(
            {"environment": name, "changes": [_change_row(change) for change in environment_drift.changes]}
        )
    else:
        _print_changes(environment_drift.changes, "no drift: the environment matches the last apply")
    return 1 if environment_drift else 0


@command.command(
    short_help="Estimate the monthly cost of an environment",
    epilog=format_examples("penstock env cost aws", "penstock env cost aws --spark-hours 200 --json"),
)
@_name
@click.option(
    "--spark-hours", default=730, show_default=True, help="Hours that each Spark worker runs in a month."
)
@click.option("--warehouse-gb", default=500, show_default=True, help="Size of the tables in GB.")
@click.option("--log-gb", default=20, show_default=True, help="Size of the logs of a month in GB.")
@_engine
@json_option
def cost(name: str, spark_hours: int, warehouse_gb: int, log_gb: int, engine: str, as_json: bool) -> None:
    """Estimate the monthly cost of an environment after its plan is applied."""
    from penstock.infra.environments.cost import MonthlyUsage, estimate_cost, read_price_table

    environment = _open_environment(name, engine)
    terraform_plan = _make_plan(environment, destroy=False)
    environment.drop_plan(terraform_plan.plan_id)
    cost_estimate = estimate_cost(
        terraform_plan.resources, MonthlyUsage(spark_hours, warehouse_gb, log_gb), read_price_table()
    )
    rows = [(str(item.monthly_usd), item.description, item.address) for item in cost_estimate.items]
    if as_json:
        items = [dict(zip(("usd", "description", "address"), row, strict=True)) for row in rows]
        price_source = {
            "region": cost_estimate.region,
            "date": cost_estimate.price_date,
            "unverified_prices": cost_estimate.unverified_prices,
        }
        print_json(
            {
                "usd": str(cost_estimate.monthly_usd),
                **price_source,
                "excluded": cost_estimate.excluded_costs,
                "items": items,
            }
        )
        return
    print_table(("USD a month", "for", "resource"), rows, empty="no resource of the plan has a price")
    click.echo(
        f"{cost_estimate.monthly_usd} USD a month, at list prices of {cost_estimate.region} "
        f"of {cost_estimate.price_date}"
    )
    click.echo(f"prices not verified against a published list: {', '.join(cost_estimate.unverified_prices)}")
    click.echo(f"not included: {'; '.join(cost_estimate.excluded_costs)}")


@command.command(
    short_help="Take the platform's settings from an environment",
    epilog=format_examples("penstock env use local", "penstock env use --none"),
)
@click.argument("name", required=False, shell_complete=complete_names(_list_environments))
@click.option("--none", "nothing", is_flag=True, help="Remove the environment's settings again.")
@_engine
def use(name: str | None, nothing: bool, engine: str) -> None:
    """Write an environment's settings to penstock.toml, so that the platform uses them."""
    from penstock.infra.environments import platform_settings
    from penstock.infra.environments.settings_file import apply_settings, remove_settings

    if (name is None) != nothing:
        raise click.UsageError("name an environment, or use --none")
    path = find_root() / SETTINGS_FILE_NAME
    text = path.read_text("utf-8") if path.exists() else ""
    if name is None:
        # Does not load the settings: it must work when the environment's values are invalid.
        write_atomically(path, remove_settings(text))
        click.echo(f"{path} has no settings of an environment now")
        return
    settings = platform_settings(_open_environment(name, engine).read_outputs())
    changed_text = apply_settings(text, settings, name)
    _check_resulting_settings(changed_text, name)
    write_atomically(path, changed_text)
    print_table(("setting", "value"), sorted(settings.items()))


@command.command(
    short_help="Release a stale Terraform lock",
    epilog=format_examples("penstock env unlock aws 0b52708d-0ef1-8619-b37f-bbf64ff78648"),
)
@_name
@click.argument("lock_id")
@yes_option
@_engine
def unlock(name: str, lock_id: str, yes: bool, engine: str) -> None:
    """Release a stale lock of an environment's Terraform state. The lock's error message contains its ID."""
    environment = _open_environment(name, engine)
    if not yes:
        confirm("Are you sure that no other process uses the environment?")
    environment.workspace.unlock(lock_id)
    click.echo(f"{name}: Terraform state unlocked")


def _check_resulting_settings(text: str, name: str) -> None:
    """Raise SettingsError for invalid settings, which would block every command that loads them."""
    try:
        check_settings(text)
    except SettingsError as error:
        raise SettingsError(
            f"the settings of environment {name} are invalid; {SETTINGS_FILE_NAME} is unchanged: {error}"
        ) from None


def _open_catalog(engine: str = "") -> "EnvironmentCatalog":
    from penstock.infra.environments import EnvironmentCatalog

    settings = current_settings()
    return EnvironmentCatalog(settings.root, settings.home, engine or settings.terraform.engine)


def _open_environment(name: str, engine: str) -> "Environment":
    settings = current_settings()
    has_own_jars = settings.jars != settings.home / "jars"
    return _open_catalog(engine).open(
        name, {"jars": str(settings.jars)} if has_own_jars and name == "local" else None
    )


def _make_plan(environment: "Environment", destroy: bool) -> "TerraformPlan":
    with StepPrinter().step(f"plan {environment.name}") as report_progress:
        return environment.plan(destroy=destroy, on_event=lambda event: report_progress(str(event)))


def _confirm_and_apply(environment: "Environment", terraform_plan: "TerraformPlan", yes: bool) -> None:
    _print_plan(terraform_plan, as_json=False)
    if terraform_plan.is_empty:
        environment.drop_plan(terraform_plan.plan_id)
        return
    if not yes:
        confirm(f"Apply this to {environment.name}?")
    with StepPrinter().step(f"apply plan {terraform_plan.plan_id} to {environment.name}") as report_progress:
        environment.apply(terraform_plan.plan_id, on_event=lambda event: report_progress(str(event)))


def _print_plan(terraform_plan: "TerraformPlan", as_json: bool) -> None:
    changes = [change for change in terraform_plan.changes if change.has_effect]
    if as_json:
        rows = [_change_row(change) for change in changes]
        print_json(
            {
                "plan": terraform_plan.plan_id,
                "empty": terraform_plan.is_empty,
                "destroys": terraform_plan.destroys,
                "changes": rows,
            }
        )
        return
    _print_changes(changes, "nothing to change")
    if not terraform_plan.is_empty:
        click.echo(f"plan {terraform_plan.plan_id}: {terraform_plan}")


def _print_changes(changes: "list[ResourceChange] | tuple[ResourceChange, ...]", empty_text: str) -> None:
    rows = [(row["action"], row["resource"], row["why"]) for row in map(_change_row, changes)]
    print_table(("action", "resource", "change"), rows, empty=empty_text)


def _change_row(change: "ResourceChange") -> dict[str, str]:
    attribute_changes = [value for value in change.values if value.before is not None and value.path != "id"]
    change_text = ", ".join(f"{value.path}: {value.before} -> {value.after}" for value in attribute_changes)
    return {
        "action": str(change.action),
        "resource": change.address,
        "why": change_text if change.action != "delete" else "",
    }
