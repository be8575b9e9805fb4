"""The platform end to end on the applied environment `local`, secured: three brokers, and Spark on two workers.

The tests are one story and run in their order; each states what holds at its point.
"""

import os
import signal
import stat
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from tests.infra.terraform.checkouts import PORTS, block_of_ports
from tests.platform.whole.applied import NAME, AppliedStack
from tests.platform.whole.expected import settled
from tests.platform.whole.stack import until

from penstock.infra.ports import LOCALHOST, answers
from penstock.ingestion.ledger import read_addresses

pytestmark = [pytest.mark.whole, pytest.mark.timeout(400)]

APPLY_SECONDS = 200.0


@pytest.fixture(scope="module")
def first_port() -> int:
    return block_of_ports()


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory, jars: Path, first_port: int) -> Iterator[AppliedStack]:
    tfvars = f"first_port = {first_port}\nsecured = true\nbroker_heap_mb = 256\n"
    made = AppliedStack(tmp_path_factory.mktemp("applied") / ".penstock", jars, tfvars=tfvars)
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
    executors = [
        process.info["cmdline"]
        for process in psutil.process_iter(["cmdline"])
        if any("CoarseGrainedExecutorBackend" in word for word in process.info["cmdline"] or [])
        and any(str(stack.run_folder) in word for word in process.info["cmdline"])
    ]
    assert len(executors) == 2, executors


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
        assert settled(stack)
    in_topic = {(partition, offset) for partition, offset, _, _ in stack.records("sensors")}
    feeds = stack.home / "producers" / "sensors-1"
    acknowledged = {(one.partition, one.offset) for one in read_addresses(feeds)}
    assert acknowledged
    assert acknowledged <= in_topic


def test_no_secret_is_where_it_should_not_be(stack: AppliedStack) -> None:
    """Plans, state, logs, tables, the control store and Dagster's storage are searched for every secret."""
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
    assert [n for n in range(PORTS) if answers(LOCALHOST, first_port + n, 0.05)] == []
    assert not stack.run_folder.exists()
