"""Brokers of the local environment: form, start, restart one by one, stop."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from penstock.core.files import file_lock, read_tail
from penstock.core.waiting import wait_until
from penstock.infra.broker import BrokerConfig, broker_command, format_storage, server_properties
from penstock.infra.jars import ensure_jars
from penstock.infra.local import kafka_cluster as clusters
from penstock.infra.local.action_requests import BrokerRequest, ClusterRequest, UsersRequest
from penstock.infra.local.detached_programs import (
    DetachedProgram,
    ProgramRecord,
    is_program_running,
    start_program,
    stop_program,
)
from penstock.infra.local.errors import ProgramFailedError
from penstock.infra.local.folders import remove_tree
from penstock.infra.local.kafka_cluster import LocalKafkaCluster
from penstock.infra.local.kafka_users import create_users
from penstock.infra.ports import LOCALHOST, accepts_connections, require_free_port

START_TIMEOUT_S = 90.0
RESTART_TIMEOUT_S = 240.0
STOP_TIMEOUT_S = 20.0
METADATA_TIMEOUT_S = 3.0


def form_cluster(request: ClusterRequest) -> None:
    """Create the cluster's ids, and download the jars."""
    ensure_jars(Path(request.jars), ["kafka"])
    clusters.create_cluster(request.path, request.first_port, request.secured, datetime.now(UTC))


def remove_cluster(request: ClusterRequest) -> None:
    """Remove the cluster with its data."""
    remove_tree(request.path)


def start_broker(request: BrokerRequest) -> None:
    """Have one broker running as ordered, and return once it has caught up.

    One that runs otherwise is restarted when every other one is well, so that one at most is away.
    One that runs as ordered is left alone.
    """
    cluster = clusters.load_cluster(request.cluster.path, request.cluster.first_port)
    config = cluster.node_config(request.node, request.heap_mb)
    program = _broker_program(cluster, config, Path(request.cluster.jars))
    if not is_program_running(program.directory, program.name):
        _start_broker_program(config, program, request)
        _wait_until_caught_up(cluster, config, program, request.brokers, START_TIMEOUT_S)
        return
    with file_lock(cluster.directory / "turn.lock", RESTART_TIMEOUT_S):
        if _settings_digest(config) != _read_record(program).settings:
            _wait_until_caught_up(cluster, config, program, request.brokers, START_TIMEOUT_S)
            stop_program(program.directory, program.name, STOP_TIMEOUT_S)
            _start_broker_program(config, program, request)
            _wait_until_caught_up(cluster, config, program, request.brokers, START_TIMEOUT_S)
        else:
            _update_token(program, request.token)


def grant_user_access(request: UsersRequest) -> None:
    """Create the users of a secured cluster with their permissions."""
    create_users(clusters.load_cluster(request.cluster.path, request.cluster.first_port), request.brokers)


def _start_broker_program(config: BrokerConfig, program: DetachedProgram, request: BrokerRequest) -> None:
    for port in _listening_ports(config):
        require_free_port(LOCALHOST, port, f"broker {config.node_id}")
    jars = ensure_jars(Path(request.cluster.jars), ["kafka"])
    format_storage(config, jars)
    start_program(program, request.token, _settings_digest(config))


def _broker_program(cluster: LocalKafkaCluster, config: BrokerConfig, jars: Path) -> DetachedProgram:
    return DetachedProgram(
        name=f"broker-{config.node_id}",
        command=tuple(broker_command(config, ensure_jars(jars, ["kafka"]))),
        marker=str(config.properties_file),
        directory=cluster.directory,
        stop_seconds=STOP_TIMEOUT_S,
    )


def _wait_until_caught_up(
    cluster: LocalKafkaCluster,
    config: BrokerConfig,
    program: DetachedProgram,
    broker_count: int,
    timeout_s: float,
) -> None:
    """Return when this broker is in the cluster and all partitions are in sync."""

    def is_caught_up() -> bool:
        if not is_program_running(program.directory, program.name):
            raise ProgramFailedError(
                f"Broker {config.node_id} ended while it was started. "
                f"The end of {program.log_file}:\n{read_tail(program.log_file)}"
            )
        return accepts_connections(LOCALHOST, config.port) and _is_caught_up(
            cluster, config.node_id, broker_count
        )

    wait_until(
        is_caught_up,
        timeout_s,
        f"broker {config.node_id} to be in the cluster and caught up; see {program.log_file}",
    )


def _is_caught_up(cluster: LocalKafkaCluster, node_id: int, broker_count: int) -> bool:
    client = AdminClient(cluster.admin_config(broker_count))
    try:
        metadata = client.list_topics(timeout=METADATA_TIMEOUT_S)
    except KafkaException:
        return False
    partitions = [partition for topic in metadata.topics.values() for partition in topic.partitions.values()]
    return node_id in metadata.brokers and all(
        len(partition.isrs) == len(partition.replicas) for partition in partitions
    )


def _listening_ports(config: BrokerConfig) -> tuple[int, ...]:
    is_voter = "controller" in server_properties(config)["process.roles"]
    return (config.port, config.controller_port) if is_voter else (config.port,)


def _settings_digest(config: BrokerConfig) -> str:
    text = f"{config.heap_mb} {sorted(server_properties(config).items())}"
    return hashlib.sha256(text.encode()).hexdigest()


def _read_record(program: DetachedProgram) -> ProgramRecord:
    record = ProgramRecord.read(program.directory, program.name)
    assert record is not None, "a program that runs has a record"
    return record


def _update_token(program: DetachedProgram, token: str) -> None:
    record = _read_record(program)
    ProgramRecord(record.pid, record.marker, token, record.settings).write(program.directory, program.name)
