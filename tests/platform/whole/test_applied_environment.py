"""The platform in production's shape: three brokers, secured, and Spark on two workers, as `local` applies them;
one database of PostgreSQL for control store and Dagster.

The tests are one story and run in their order; each states what holds at its point.
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
from tests.platform.conftest import SERVERS
from tests.platform.whole.applied import NAME, AppliedStack
from tests.platform.whole.killing import counted_once
from tests.platform.whole.stack import until
from tests.platform.whole.stored import tables_holding

from penstock.infra.ports import LOCALHOST, accepts_connections

pytestmark = [pytest.mark.whole, pytest.mark.timeout(400)]

APPLY_SECONDS = 200.0


def executors(stack: AppliedStack) -> list[psutil.Process]:
    """The executors that work for the stack's streams."""
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
    """An empty database of a real PostgreSQL; None where none is installed, and SQLite has to do."""
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
    made = AppliedStack(home, jars, dict.fromkeys(shared, database or ""), tfvars)
    try:
        with made.ended_at_last():
            yield made
    finally:
        made.must("env", "destroy", NAME, "--yes", seconds=APPLY_SECONDS)


def test_the_platform_runs_on_what_was_applied(stack: AppliedStack) -> None:
    stack.must("env", "apply", NAME, "--yes", seconds=APPLY_SECONDS)
    assert stack.run("env", "plan", NAME).returncode == 0, "a plan right after apply shows a change"
    used = stack.must("env", "use", NAME)
    assert "kafka.security.secrets.host" in used
    stack.up()
    assert "broker" not in stack.pids(), "a local broker runs beside the environment's"
    until(lambda: stack.batch() > 3, 120, "some batches")
    assert stack.run("doctor").returncode == 0
    assert "SASL_SSL" in stack.run("doctor").stdout


def test_topics_have_three_copies_and_are_as_declared(stack: AppliedStack) -> None:
    from confluent_kafka.admin import AdminClient

    topics = AdminClient({**stack.client, "log_level": "0"}).list_topics(timeout=30).topics
    copies = {len(part.replicas) for part in topics["sensors"].partitions.values()}
    assert copies == {3}
    assert len(topics["sensors"].partitions) == 12


def test_executors_of_both_workers_do_the_work(stack: AppliedStack) -> None:
    until(lambda: len(executors(stack)) == 2, 60, "an executor on each worker")


def test_control_store_and_dagster_share_a_database_of_postgresql(
    stack: AppliedStack, database: str | None
) -> None:
    if database is None:
        pytest.skip("PostgreSQL's programs are not installed: apt-get install postgresql")
    stack.launch("stream_restart", stream="sensor_minute")
    batch = stack.batch()
    until(lambda: stack.batch() > batch, 60, "batches after Dagster's job")
    engine = create_engine(database.replace("postgresql:", "postgresql+psycopg:"))
    with engine.connect() as connection:
        told = connection.exec_driver_sql("SELECT count(*) FROM penstock.batches").scalar()
        asked = "SELECT status FROM public.runs WHERE pipeline_name = 'stream_restart'"
        runs = connection.exec_driver_sql(asked).scalars().all()
    engine.dispose()
    assert told
    assert runs == ["SUCCESS"]
    assert not list(stack.home.rglob("control.db")), "and nothing is in SQLite"


def test_a_replay_finds_room_on_the_cluster_beside_the_stream(stack: AppliedStack) -> None:
    stack.must("stream", "replay", "sensor_minute", "--beside", "--name", "beside", seconds=300)
    assert stack.state() == "running"
    until(lambda: len(executors(stack)) == 2, 30, "what it took to be given back")


@pytest.mark.parametrize("victim", ["host", "executor"])
def test_a_stream_on_the_cluster_that_is_killed_goes_on(stack: AppliedStack, victim: str) -> None:
    batch = stack.batch()
    os.kill(stack.pids()["host"] if victim == "host" else executors(stack)[0].pid, signal.SIGKILL)
    until(lambda: stack.batch() > batch + 3, 120, f"batches after the {victim} was killed")
    until(lambda: len(executors(stack)) == 2, 60, "an executor on each worker")


def test_a_killed_leader_loses_nothing_and_is_mended_while_the_stream_goes_on(stack: AppliedStack) -> None:
    killed = stack.leader("sensors")
    before = stack.environment_pids()
    os.kill(before[f"broker-{killed}"], signal.SIGKILL)
    batch = stack.batch()
    until(lambda: stack.batch() > batch + 2, 90, "batches without that broker")
    shown = stack.run("env", "drift", NAME)
    assert shown.returncode == 1
    assert f'broker["{killed}"].terraform_data.running' in shown.stdout
    stack.must("env", "apply", NAME, "--yes", seconds=APPLY_SECONDS)
    assert stack.run("env", "drift", NAME).returncode == 0
    after = stack.environment_pids()
    assert {name for name in before if before[name] != after[name]} == {f"broker-{killed}"}


def test_the_table_holds_what_was_acknowledged(stack: AppliedStack) -> None:
    with stack.without_feed():
        counted_once(stack)


def test_no_secret_is_where_it_should_not_be(stack: AppliedStack, database: str | None) -> None:
    """Plans, state, logs, tables, the control store and Dagster's storage are searched for every secret."""
    if database is not None:
        assert tables_holding(database, set(stack.secrets().values())) == []
    spark = stack.run_folder / "spark"
    may_hold = {*stack.secrets(), *spark.glob("*.properties"), stack.home / "spark" / "private.properties"}
    holding = stack.files_with_a_secret()
    assert set(holding) <= may_hold
    assert {stat.S_IMODE(path.stat().st_mode) for path in holding} == {0o600}
    assert stack.command_lines_with_a_secret() == []
    said = (
        stack.must("status", "--settings") + stack.must("logs", "-n", "2000") + stack.must("env", "use", NAME)
    )
    assert not [value for value in stack.secrets().values() if value.decode() in said]


def test_destroy_leaves_no_process_port_or_file(stack: AppliedStack, first_port: int) -> None:
    stack.down()
    stack.must("env", "destroy", NAME, "--yes", seconds=APPLY_SECONDS)
    stack.must("env", "use", "--none")
    assert (stack.root / "penstock.toml").read_text("utf-8").strip() == ""
    lines = [" ".join(process.info["cmdline"] or []) for process in psutil.process_iter(["cmdline"])]
    assert [line for line in lines if str(stack.root) in line] == []
    assert [n for n in range(PORT_COUNT) if accepts_connections(LOCALHOST, first_port + n, 0.05)] == []
    assert not stack.run_folder.exists()
