"""The platform on the secured environment `local`: three brokers, Spark with two workers, and PostgreSQL.

The tests build on each other and run in this order.
"""

import os
import signal
import stat
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from sqlalchemy import create_engine
from tests.infra.environments.environment_copies import PORT_COUNT, find_first_port
from tests.patience import PATIENCE_S
from tests.platform.conftest import SERVERS
from tests.platform.whole.applied_stack import ENVIRONMENT, AppliedStack
from tests.platform.whole.database_search import find_tables_with_values
from tests.platform.whole.scratch_stack import poll_until
from tests.platform.whole.stack_processes import check_counted_once

from penstock.infra.ports import LOCALHOST, accepts_connections

pytestmark = pytest.mark.whole

APPLY_SECONDS = 200.0


def find_executors(stack: AppliedStack) -> list[psutil.Process]:
    """List the executors of the stack."""
    return [
        process
        for process in psutil.process_iter(["cmdline"])
        if any("CoarseGrainedExecutorBackend" in word for word in process.info["cmdline"] or [])
        and any(str(stack.run_folder) in word for word in process.info["cmdline"])
    ]


@pytest.fixture(scope="module")
def first_port() -> int:
    return find_first_port()


@pytest.fixture(scope="module")
def database(request: pytest.FixtureRequest) -> str | None:
    """An empty PostgreSQL database, or None where it is not installed and SQLite is used."""
    if not list(SERVERS.glob("*/bin/initdb")):
        return None
    address: str = request.getfixturevalue("postgres").database("penstock")
    return address


@pytest.fixture(scope="module")
def stack(
    tmp_path_factory: pytest.TempPathFactory, jars: Path, first_port: int, database: str | None
) -> Iterator[AppliedStack]:
    tfvars = f"first_port = {first_port}\nsecured = true\nbroker_heap_mb = 256\n"
    home = tmp_path_factory.mktemp("applied") / ".penstock"
    shared = ("PENSTOCK_CONTROL_URL", "PENSTOCK_DAGSTER__STORAGE_URL") if database else ()
    applied = AppliedStack(home, jars, dict.fromkeys(shared, database or ""), tfvars)
    try:
        with applied.stopped_on_exit():
            yield applied
    finally:
        applied.run_checked("env", "destroy", ENVIRONMENT, "--yes", seconds=APPLY_SECONDS)


def test_the_platform_runs_on_the_applied_environment(stack: AppliedStack) -> None:
    stack.run_checked("env", "apply", ENVIRONMENT, "--yes", seconds=APPLY_SECONDS)
    assert stack.run("env", "plan", ENVIRONMENT).returncode == 0, "a plan right after apply shows a change"
    output = stack.run_checked("env", "use", ENVIRONMENT)
    assert "kafka.security.secrets.host" in output
    stack.up()
    assert "broker" not in stack.pids(), "a local broker runs beside the environment's"
    poll_until(lambda: stack.batch() > 3, PATIENCE_S, "some batches")
    assert stack.run("doctor").returncode == 0
    assert "SASL_SSL" in stack.run("doctor").stdout


def test_topics_have_three_replicas_and_the_declared_partitions(stack: AppliedStack) -> None:
    from confluent_kafka.admin import AdminClient

    topics = AdminClient({**stack.client, "log_level": "0"}).list_topics(timeout=PATIENCE_S).topics
    replica_counts = {len(part.replicas) for part in topics["sensors"].partitions.values()}
    assert replica_counts == {3}
    assert len(topics["sensors"].partitions) == 12


def test_both_workers_have_an_executor(stack: AppliedStack) -> None:
    poll_until(lambda: len(find_executors(stack)) == 2, PATIENCE_S, "an executor on each worker")


def test_control_store_and_dagster_share_a_postgresql_database(
    stack: AppliedStack, database: str | None
) -> None:
    if database is None:
        pytest.skip("PostgreSQL's programs are not installed: apt-get install postgresql")
    stack.launch("stream_restart", stream="sensor_minute")
    batch = stack.batch()
    poll_until(lambda: stack.batch() > batch, PATIENCE_S, "batches after Dagster's job")
    engine = create_engine(database.replace("postgresql:", "postgresql+psycopg:"))
    with engine.connect() as connection:
        batch_count = connection.exec_driver_sql("SELECT count(*) FROM penstock.batches").scalar()
        query = "SELECT status FROM public.runs WHERE pipeline_name = 'stream_restart'"
        runs = connection.exec_driver_sql(query).scalars().all()
    engine.dispose()
    assert batch_count
    assert runs == ["SUCCESS"]
    assert not list(stack.home.rglob("control.db")), "SQLite is not used"


def test_a_replay_runs_on_the_cluster_beside_the_stream(stack: AppliedStack) -> None:
    stack.run_checked("stream", "replay", "sensor_minute", "--beside", "--name", "beside", seconds=300)
    assert stack.state() == "running"
    poll_until(lambda: len(find_executors(stack)) == 2, PATIENCE_S, "its executors to be released")


@pytest.mark.parametrize("victim", ["host", "executor"])
def test_a_killed_stream_on_the_cluster_resumes(stack: AppliedStack, victim: str) -> None:
    batch = stack.batch()
    os.kill(stack.pids()["host"] if victim == "host" else find_executors(stack)[0].pid, signal.SIGKILL)
    poll_until(lambda: stack.batch() > batch + 3, PATIENCE_S, f"batches after the {victim} was killed")
    poll_until(lambda: len(find_executors(stack)) == 2, PATIENCE_S, "an executor on each worker")


def test_a_killed_leader_is_repaired_while_the_stream_runs(stack: AppliedStack) -> None:
    killed = stack.leader("sensors")
    before = stack.environment_pids()
    os.kill(before[f"broker-{killed}"], signal.SIGKILL)
    batch = stack.batch()
    poll_until(lambda: stack.batch() > batch + 2, PATIENCE_S, "batches without that broker")
    drift = stack.run("env", "drift", ENVIRONMENT)
    assert drift.returncode == 1
    assert f'broker["{killed}"].terraform_data.running' in drift.stdout
    stack.run_checked("env", "apply", ENVIRONMENT, "--yes", seconds=APPLY_SECONDS)
    assert stack.run("env", "drift", ENVIRONMENT).returncode == 0
    after = stack.environment_pids()
    assert {name for name in before if before[name] != after[name]} == {f"broker-{killed}"}


def test_the_table_has_every_acknowledged_record(stack: AppliedStack) -> None:
    with stack.without_feed():
        check_counted_once(stack)


def test_no_secret_is_outside_of_its_file(stack: AppliedStack, database: str | None) -> None:
    """Search plans, state, logs, tables, control store and Dagster's storage for every secret."""
    if database is not None:
        assert find_tables_with_values(database, set(stack.secrets().values())) == []
    spark = stack.run_folder / "spark"
    secret_files = {
        *stack.secrets(),
        *spark.glob("*.properties"),
        stack.home / "spark" / "private.properties",
    }
    files = stack.files_with_a_secret()
    assert set(files) <= secret_files
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
    assert stack.command_lines_with_a_secret() == []
    shown_text = (
        stack.run_checked("status", "--settings")
        + stack.run_checked("logs", "-n", "2000")
        + stack.run_checked("env", "use", ENVIRONMENT)
    )
    assert not [value for value in stack.secrets().values() if value.decode() in shown_text]


def test_destroy_removes_every_process_port_and_file(stack: AppliedStack, first_port: int) -> None:
    stack.down()
    stack.run_checked("env", "destroy", ENVIRONMENT, "--yes", seconds=APPLY_SECONDS)
    stack.run_checked("env", "use", "--none")
    assert (stack.root / "penstock.toml").read_text("utf-8").strip() == ""
    lines = [" ".join(process.info["cmdline"] or []) for process in psutil.process_iter(["cmdline"])]
    assert [line for line in lines if str(stack.root) in line] == []
    assert [n for n in range(PORT_COUNT) if accepts_connections(LOCALHOST, first_port + n, 0.05)] == []
    assert not stack.run_folder.exists()
