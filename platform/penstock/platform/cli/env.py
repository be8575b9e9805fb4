"""`penstock env`: environments by Terraform: planned, approved, applied, watched, costed, used."""

import getpass
from typing import TYPE_CHECKING

import click

from penstock.platform.cli.context import current_settings
from penstock.platform.cli.output import Steps, example, print_json, print_table
from penstock.platform.errors import SettingsError
from penstock.platform.settings import check_settings, find_root
from penstock.platform.settings.names import FILE

if TYPE_CHECKING:
    from penstock.infra.environments import Catalog, Environment
    from penstock.infra.terraform import Plan, ResourceChange


@click.group(name="env")
def command() -> None:
    """Environments: see what would change, then change it; what is applied was shown first."""


def _complete(_context: click.Context, _parameter: click.Parameter, typed: str) -> list[str]:
    return [name for name in _catalog("embedded").names() if name.startswith(typed)]


_name = click.argument("name", shell_complete=_complete)
_json = click.option("--json", "as_json", is_flag=True, help="Print for programs.")
_yes = click.option("--yes", is_flag=True, help="Do not ask.")
_engine = click.option(
    "--engine",
    default="embedded",
    show_default=True,
    help="Which Terraform runs: embedded, terraform, tofu, or the path of one.",
)


@command.command(name="list", epilog=example("penstock env list"))
@_json
def list_(as_json: bool) -> None:
    """List the environments."""
    names = _catalog("embedded").names()
    if as_json:
        print_json(names)
    else:
        print_table(("environment",), [(name,) for name in names])


@command.command(epilog=example("penstock env plan local", "penstock env plan aws --json"))
@_name
@click.option("--destroy", is_flag=True, help="Plan to remove everything.")
@_engine
@_json
def plan(name: str, destroy: bool, engine: str, as_json: bool) -> int:
    """Show what would be changed, and keep the plan; ends with 1 when anything would be."""
    made = _planned(_open(name, engine), destroy)
    _show(made, as_json)
    return 0 if made.is_empty else 1


@command.command(epilog=example("penstock env approve aws 3f1c0a9b7d21"))
@_name
@click.argument("plan_id")
@_engine
def approve(name: str, plan_id: str, engine: str) -> None:
    """Say that a plan may be applied, by you and now; Dagster applies no other."""
    from datetime import UTC, datetime

    environment = _open(name, engine)
    _show(environment.shown(plan_id), as_json=False)
    approval = environment.approve(plan_id, getpass.getuser(), datetime.now(UTC))
    click.echo(f"plan {approval.plan_id} of {name} was approved by {approval.by}")


@command.command(epilog=example("penstock env apply local", "penstock env apply aws --plan 3f1c0a9b7d21"))
@_name
@click.option(
    "--plan", "plan_id", help="A plan that was shown before; without it a new one is made and shown."
)
@_yes
@_engine
def apply(name: str, plan_id: str | None, yes: bool, engine: str) -> None:
    """Make an environment as its folder says, by a plan that was shown."""
    environment = _open(name, engine)
    made = environment.shown(plan_id) if plan_id else _planned(environment, destroy=False)
    _carry_out(environment, made, yes)


@command.command(epilog=example("penstock env destroy local"))
@_name
@_yes
@_engine
def destroy(name: str, yes: bool, engine: str) -> None:
    """Remove an environment, with all the data in it."""
    environment = _open(name, engine)
    _carry_out(environment, _planned(environment, destroy=True), yes)


@command.command(epilog=example("penstock env drift local"))
@_name
@_engine
@_json
def drift(name: str, engine: str, as_json: bool) -> int:
    """Show what differs from what was applied; ends with 1 when anything does."""
    with Steps().step(f"compare {name} with what was applied"):
        found = _open(name, engine).drift()
    if as_json:
        print_json({"environment": name, "changes": [_row(change) for change in found.changes]})
    else:
        _print_changes(found.changes, "nothing differs from what was applied")
    return 1 if found else 0


@command.command(epilog=example("penstock env cost aws", "penstock env cost aws --spark-hours 200 --json"))
@_name
@click.option(
    "--spark-hours", default=730, show_default=True, help="Busy hours of each Spark worker in a month."
)
@click.option("--warehouse-gb", default=500, show_default=True, help="What the tables take, in GB.")
@click.option("--log-gb", default=20, show_default=True, help="What is logged in a month, in GB.")
@_engine
@_json
def cost(name: str, spark_hours: int, warehouse_gb: int, log_gb: int, engine: str, as_json: bool) -> None:
    """Estimate what an environment costs a month once its plan is applied."""
    from penstock.infra.environments.cost import Usage, estimate, read_prices

    environment = _open(name, engine)
    made = _planned(environment, destroy=False)
    environment.drop(made.plan_id)
    found = estimate(made.resources, Usage(spark_hours, warehouse_gb, log_gb), read_prices())
    rows = [(str(item.monthly), item.what, item.address) for item in found.items]
    if as_json:
        items = [dict(zip(("usd", "what", "address"), row, strict=True)) for row in rows]
        about = {"region": found.region, "date": found.date, "never_compared": found.never_compared}
        print_json({"usd": str(found.monthly), **about, "not_counted": found.not_counted, "items": items})
        return
    print_table(("USD a month", "for", "resource"), rows, empty="nothing in it has a price")
    click.echo(f"{found.monthly} USD a month, at list prices of {found.region} of {found.date}")
    click.echo(f"prices of {', '.join(found.never_compared)} were never compared with a published copy")
    click.echo(f"not counted: {'; '.join(found.not_counted)}")


@command.command(epilog=example("penstock env use local", "penstock env use --none"))
@click.argument("name", required=False, shell_complete=_complete)
@click.option("--none", "nothing", is_flag=True, help="Go back to the settings' own values.")
@_engine
def use(name: str | None, nothing: bool, engine: str) -> None:
    """Have the platform take its settings from an environment, by lines in penstock.toml."""
    from penstock.infra.environments import platform_settings
    from penstock.infra.environments.settings_file import with_settings, without_marked

    if (name is None) != nothing:
        raise click.UsageError("Name an environment, or say --none.")
    path = find_root() / FILE
    text = path.read_text("utf-8") if path.exists() else ""
    if name is None:
        # Without asking for the settings: this is the way back from lines that no command can use.
        path.write_text(without_marked(text), "utf-8")
        click.echo(f"{path} names no environment any more")
        return
    settings = platform_settings(_open(name, engine).outputs())
    changed = with_settings(text, settings, name)
    _refuse_what_cannot_be_used(changed, name)
    path.write_text(changed, "utf-8")
    print_table(("setting", "value"), sorted(settings.items()))


@command.command(epilog=example("penstock env unlock aws 0b52708d-0ef1-8619-b37f-bbf64ff78648"))
@_name
@click.argument("lock_id")
@_yes
@_engine
def unlock(name: str, lock_id: str, yes: bool, engine: str) -> None:
    """Release a lock that somebody left behind; an error that names it says its id."""
    if not yes:
        click.confirm("Is it certain that nobody works on it any more?", abort=True)
    _open(name, engine).workspace.unlock(lock_id)
    click.echo(f"the state of {name} is unlocked")


def _refuse_what_cannot_be_used(text: str, name: str) -> None:
    """Settings that the platform cannot use would stop every command, also the one that takes them back."""
    try:
        check_settings(text)
    except SettingsError as error:
        raise SettingsError(f"The platform cannot run on {name}, and {FILE} is as it was: {error}") from None


def _catalog(engine: str) -> "Catalog":
    from penstock.infra.environments import Catalog

    settings = current_settings()
    return Catalog(settings.root, settings.home, engine)


def _open(name: str, engine: str) -> "Environment":
    settings = current_settings()
    other = settings.jars != settings.home / "jars"
    return _catalog(engine).open(name, {"jars": str(settings.jars)} if other and name == "local" else None)


def _planned(environment: "Environment", destroy: bool) -> "Plan":
    with Steps().step(f"plan {environment.name}") as tell:
        return environment.plan(destroy=destroy, on_event=lambda event: tell(str(event)))


def _carry_out(environment: "Environment", made: "Plan", yes: bool) -> None:
    _show(made, as_json=False)
    if made.is_empty:
        environment.drop(made.plan_id)
        return
    if not yes:
        click.confirm(f"Apply this to {environment.name}?", abort=True)
    with Steps().step(f"apply plan {made.plan_id} to {environment.name}") as tell:
        environment.apply(made.plan_id, on_event=lambda event: tell(str(event)))


def _show(made: "Plan", as_json: bool) -> None:
    changes = [change for change in made.changes if change.changes_something]
    if as_json:
        rows = [_row(change) for change in changes]
        print_json({"plan": made.plan_id, "empty": made.is_empty, "destroys": made.destroys, "changes": rows})
        return
    _print_changes(changes, "nothing to change")
    if not made.is_empty:
        click.echo(f"plan {made.plan_id}: {made}")


def _print_changes(changes: "list[ResourceChange] | tuple[ResourceChange, ...]", nothing: str) -> None:
    rows = [(row["action"], row["resource"], row["why"]) for row in map(_row, changes)]
    print_table(("action", "resource", "change"), rows, empty=nothing)


def _row(change: "ResourceChange") -> dict[str, str]:
    known = [value for value in change.values if value.before is not None and value.path != "id"]
    why = ", ".join(f"{value.path}: {value.before} -> {value.after}" for value in known)
    return {
        "action": str(change.action),
        "resource": change.address,
        "why": why if change.action != "delete" else "",
    }
