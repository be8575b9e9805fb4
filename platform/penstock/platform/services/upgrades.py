"""Upgrades of streams to a changed pipeline: the plan, its cost, and its application."""

from collections.abc import Collection
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.core.names import explain_unknown_name
from penstock.core.progress import ProgressReporter
from penstock.engine.stream_folders import resolve_stream_folder
from penstock.engine.upgrade.upgrade_class import PlanUpgrade, UpgradeClass
from penstock.platform.errors import UnknownColumnError, UpgradeRefusedError
from penstock.platform.services.replay_estimate import ReplayEstimate, estimate_replay
from penstock.platform.services.stream_catalog import check_pipeline_exists, reload_plan
from penstock.platform.services.stream_hold import hold_stream
from penstock.platform.services.stream_lifecycle import STREAM_COMMANDS, request_state, wait_for_state
from penstock.platform.settings import Settings

if TYPE_CHECKING:
    from penstock.engine.plan.stages import Plan
    from penstock.platform.control import ControlStore

RESTART_TIMEOUT_S = 120.0


@dataclass(frozen=True)
class UpgradeCost:
    """The cost of an upgrade: state to rewrite, records to replay, and how long a replay would take."""

    windows: int
    state_bytes: int
    records: int
    replay: ReplayEstimate | None
    """None for a stream without state, which has nothing to replay."""


@dataclass(frozen=True)
class UpgradePlan:
    """A planned upgrade. `plan_changes` is None for a stream without state, which needs no upgrade."""

    stream: str
    plan_changes: PlanUpgrade | None
    replay_start: str
    cost: UpgradeCost

    @property
    def upgrade_class(self) -> UpgradeClass:
        """What the upgrade requires."""
        return UpgradeClass.SAME if self.plan_changes is None else self.plan_changes.upgrade_class

    def as_json(self) -> dict[str, Any]:
        """Return the upgrade plan as JSON data."""
        differences = () if self.plan_changes is None else self.plan_changes.differences
        return {
            "stream": self.stream,
            "upgrade_class": self.upgrade_class.label,
            "differences": [
                {**asdict(difference), "upgrade_class": difference.upgrade_class.label}
                for difference in differences
            ],
            "cost": {
                **asdict(self.cost),
                "replay_from": self.replay_start,
                "replay_seconds": None if self.cost.replay is None else round(self.cost.replay.seconds, 1),
            },
        }


@dataclass(frozen=True)
class UpgradeRequest:
    """A request for an upgrade: columns that may count from now on, the start of a replay, the accepted class."""

    stream: str
    from_now: tuple[str, ...] = ()
    start: str = ""
    accept: UpgradeClass = UpgradeClass.REPLAY
    wait_seconds: float = RESTART_TIMEOUT_S


def plan_upgrade(settings: Settings, store: "ControlStore", request: UpgradeRequest) -> UpgradePlan:
    """Assess what the upgrade of a stream to its current pipeline requires. Changes nothing."""
    from penstock.engine.upgrade.stored_plan import assess_upgrade

    check_pipeline_exists(request.stream)
    plan = reload_plan(request.stream)
    _check_columns_exist(plan, request.from_now)
    folder = resolve_stream_folder(settings.home / "streams", request.stream)
    plan_changes = assess_upgrade(folder, plan, request.from_now)
    return UpgradePlan(
        request.stream,
        plan_changes,
        request.start or _default_replay_start(settings, plan),
        _estimate_upgrade_cost(store, plan, folder),
    )


def _check_columns_exist(plan: "Plan", from_now: Collection[str]) -> None:
    columns = {output.name for stage in plan.stages for output in stage.aggregates}
    for name in from_now:
        if name not in columns:
            raise UnknownColumnError(explain_unknown_name(f"column of {plan.name}", name, sorted(columns)))


def upgrade_stream(
    settings: Settings, store: "ControlStore", request: UpgradeRequest, report_progress: ProgressReporter
) -> UpgradePlan:
    """Upgrade a stream to its current pipeline; return the upgrade plan. A stopped stream stays stopped.

    Raises UpgradeRefusedError, and changes nothing, if the upgrade requires more than the request accepts.
    """
    upgrade_plan = plan_upgrade(settings, store, request)
    check_upgrade_accepted(upgrade_plan, request.accept)
    match upgrade_plan.upgrade_class:
        case UpgradeClass.SAME | UpgradeClass.COMPATIBLE:
            from penstock.engine.upgrade.kept_future_skew import accept_skew

            if upgrade_plan.upgrade_class is UpgradeClass.COMPATIBLE:
                accept_skew(resolve_stream_folder(settings.home / "streams", request.stream))
            desired_state = store.read_desired_states().get(request.stream)
            if (
                upgrade_plan.upgrade_class is UpgradeClass.COMPATIBLE
                and desired_state is not None
                and desired_state.needs_host
            ):
                report_progress("restarting the stream")
                restart_command = replace(
                    STREAM_COMMANDS["restart"], desired=desired_state.desired
                )  # a paused stream stays paused
                wait_for_state(
                    store,
                    request_state(store, request.stream, restart_command, (request.stream,)),
                    request.wait_seconds,
                )
        case UpgradeClass.MIGRATABLE:
            _migrate_stream(settings, store, request, report_progress)
        case UpgradeClass.REPLAY:
            from penstock.platform.services.replay import ReplayRequest, replay_stream

            replay_stream(
                settings, store, ReplayRequest(request.stream, upgrade_plan.replay_start), report_progress
            )
    return upgrade_plan


def check_upgrade_accepted(upgrade_plan: UpgradePlan, accepted_class: UpgradeClass) -> None:
    """Raise UpgradeRefusedError, with the reasons, if the upgrade requires more than the accepted class."""
    required_class = upgrade_plan.upgrade_class
    if required_class <= accepted_class:
        return
    differences = upgrade_plan.plan_changes.differences if upgrade_plan.plan_changes else ()
    reasons = "; ".join(
        f"{difference.subject}: {difference.before} -> {difference.after}"
        for difference in differences
        if difference.upgrade_class > accepted_class
    )
    raise UpgradeRefusedError(
        f"the upgrade of {upgrade_plan.stream} is {required_class.label}, but only {accepted_class.label} is "
        f"accepted. {required_class.label}: {required_class.description} ({reasons}). "
        f"`penstock stream plan-upgrade {upgrade_plan.stream}` shows the cost; "
        f"accept {required_class.label} to apply it"
    )


def _migrate_stream(
    settings: Settings, store: "ControlStore", request: UpgradeRequest, report_progress: ProgressReporter
) -> None:
    from penstock.engine.host.control_reporter import to_batch_record
    from penstock.engine.operators.stage_graph import compile_graph
    from penstock.engine.spark.transform.schema_inference import FieldTypeResolver
    from penstock.engine.upgrade.state_migration import migrate_state
    from penstock.platform.services.command_spark import open_command_spark

    plan = reload_plan(request.stream)
    streams = settings.home / "streams"
    with open_command_spark(settings, f"upgrade-{request.stream}", report_progress) as session:
        graph = compile_graph(plan, FieldTypeResolver(session).resolve_plan(plan))
        with hold_stream(store, streams, request.stream, "an upgrade", report_progress) as fence:
            report_progress("rewriting the state")
            folder = resolve_stream_folder(streams, request.stream)
            _finish_last_commit(settings, folder, plan)
            outcome = migrate_state(folder, plan, graph, request.from_now, fence.epoch)
            store.record_batch(to_batch_record(request.stream, outcome))


def _finish_last_commit(settings: Settings, folder: Path, plan: "Plan") -> None:
    """Finish the commit of a killed host: write its last journaled batch to the tables again."""
    from penstock.engine.batch.commit_recovery import finish_commits
    from penstock.engine.batch.journal import BatchJournal
    from penstock.engine.batch.stream_claim import make_stream_claim

    last_outcome = BatchJournal(folder / "journal").read_last_outcome()
    if last_outcome is not None:
        broker = settings.kafka.broker_access("host")
        claim = make_stream_claim(settings.home / "streams", plan.name)
        finish_commits(last_outcome, plan, settings.warehouse_path, broker.client_config, claim)


def _default_replay_start(settings: Settings, plan: "Plan") -> str:
    """Return the default start of a replay: the archives if every topic has one, otherwise the topics."""
    from penstock.engine.archive.archive_names import records_path
    from penstock.engine.batch.input_watermarks import topic_of
    from penstock.engine.storage.file_access import is_delta_table

    archive_paths = [settings.warehouse_path / records_path(topic_of(source)) for source in plan.sources]
    return "archive" if all(is_delta_table(archive_path) for archive_path in archive_paths) else "topic"


def _estimate_upgrade_cost(store: "ControlStore", plan: "Plan", folder: Path) -> UpgradeCost:
    from penstock.engine.batch.journal import BatchJournal

    last_outcome = BatchJournal(folder / "journal").read_last_outcome()
    if last_outcome is None:
        return UpgradeCost(0, 0, 0, None)
    files = [
        folder / "state" / stage / file_name
        for stage, file_names in last_outcome.state_files.items()
        for file_name in file_names
    ]
    state_bytes = sum(file.stat().st_size for file in files if file.exists())
    records = sum(last_outcome.ends.values())
    return UpgradeCost(
        last_outcome.state_rows, state_bytes, records, estimate_replay(store, plan.name, records)
    )
