"""Brokers of the local environment: formed, started, restarted one after the other, ended."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from penstock.infra.broker import BrokerConfig, broker_command, format_storage, server_properties
from penstock.infra.files import held
from penstock.infra.jars import ensure_jars
from penstock.infra.local import cluster as clusters
from penstock.infra.local.cluster import Cluster
from penstock.infra.local.errors import ProgramFailedError
from penstock.infra.local.folders import remove_tree
from penstock.infra.local.orders import BrokerOrder, ClusterOrder, UsersOrder
from penstock.infra.local.programs import Program, Record, last_lines, runs, start, stop
from penstock.infra.local.users import grant_users
from penstock.infra.ports import LOCALHOST, answers, require_free
from penstock.infra.waiting import wait_until

START_SECONDS = 90.0
RESTART_SECONDS = 240.0
STOP_SECONDS = 20.0
ANSWER_SECONDS = 3.0


def form_cluster(order: ClusterOrder) -> None:
    """Decide the cluster's ids, and have the jars."""
    ensure_jars(Path(order.jars), ["kafka"])
    clusters.form(order.path, order.first_port, order.secured, datetime.now(UTC))


def remove_cluster(order: ClusterOrder) -> None:
    """Remove the cluster with all its data."""
    remove_tree(order.path)


def start_broker(order: BrokerOrder) -> None:
    """Have one broker running as ordered, and return once it has caught up.

    One that runs otherwise is restarted when every other one is well, so that one at most is away.
    One that runs as ordered is left alone.
    """
    cluster = clusters.formed(order.cluster.path, order.cluster.first_port)
    config = cluster.node(order.node, order.heap_mb)
    program = _program(cluster, config, Path(order.cluster.jars))
    if not runs(program.directory, program.name):
        _start(config, program, order)
        _wait_until_well(cluster, config, program, order.brokers, START_SECONDS)
        return
    with held(cluster.directory / "turn.lock", RESTART_SECONDS):
        if _settings(config) != _record(program).settings:
            _wait_until_well(cluster, config, program, order.brokers, START_SECONDS)
            stop(program.directory, program.name, STOP_SECONDS)
            _start(config, program, order)
            _wait_until_well(cluster, config, program, order.brokers, START_SECONDS)
        else:
            _name_again(program, order.token)


def grant(order: UsersOrder) -> None:
    """Make the users of a secured cluster, with what each may do."""
    grant_users(clusters.formed(order.cluster.path, order.cluster.first_port), order.brokers)


def _start(config: BrokerConfig, program: Program, order: BrokerOrder) -> None:
    for port in _ports(config):
        require_free(LOCALHOST, port, f"broker {config.node_id}")
    jars = ensure_jars(Path(order.cluster.jars), ["kafka"])
    format_storage(config, jars)
    start(program, order.token, _settings(config))


def _program(cluster: Cluster, config: BrokerConfig, jars: Path) -> Program:
    return Program(
        name=f"broker-{config.node_id}",
        command=tuple(broker_command(config, ensure_jars(jars, ["kafka"]))),
        marker=str(config.file),
        directory=cluster.directory,
        stop_seconds=STOP_SECONDS,
    )


def _wait_until_well(
    cluster: Cluster, config: BrokerConfig, program: Program, brokers: int, seconds: float
) -> None:
    """Return once this broker is in the cluster and no partition waits for a copy."""

    def well() -> bool:
        if not runs(program.directory, program.name):
            raise ProgramFailedError(
                f"Broker {config.node_id} ended while it was started. "
                f"The end of {program.log}:\n{last_lines(program)}"
            )
        return answers(LOCALHOST, config.port) and _caught_up(cluster, config.node_id, brokers)

    wait_until(
        well, seconds, f"broker {config.node_id} to be in the cluster and caught up; see {program.log}"
    )


def _caught_up(cluster: Cluster, node: int, brokers: int) -> bool:
    client = AdminClient(cluster.admin_settings(brokers))
    try:
        told = client.list_topics(timeout=ANSWER_SECONDS)
    except KafkaException:
        return False
    partitions = [one for topic in told.topics.values() for one in topic.partitions.values()]
    return node in told.brokers and all(len(one.isrs) == len(one.replicas) for one in partitions)


def _ports(config: BrokerConfig) -> tuple[int, ...]:
    votes = "controller" in server_properties(config)["process.roles"]
    return (config.port, config.controller_port) if votes else (config.port,)


def _settings(config: BrokerConfig) -> str:
    text = f"{config.heap_mb} {sorted(server_properties(config).items())}"
    return hashlib.sha256(text.encode()).hexdigest()


def _record(program: Program) -> Record:
    record = Record.read(program.directory, program.name)
    assert record is not None, "a program that runs has a record"
    return record


def _name_again(program: Program, token: str) -> None:
    record = _record(program)
    Record(record.pid, record.marker, token, record.settings).write(program.directory, program.name)
