"""The table of listeners is complete, is in the docs, and tells an undeclared socket from a declared one."""

import os
import re
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from tests.platform.security.declared_listeners import find_undeclared, read_sockets

from penstock.infra.container.__main__ import _spark_environment
from penstock.platform.security.listener_table import format_listener_table
from penstock.platform.security.listeners import LISTENERS, list_listeners
from penstock.platform.security.open_sockets import OpenSocket, find_listener, list_open_sockets
from penstock.platform.security.port_rules import FixedPort, SettingPort
from penstock.platform.settings import load_settings

PAGE = Path("platform/docs/security.md")
DOCKER = Path("docker")
KNOWN_PORTS = {"first_port": 19000, "kafka.port": 9092}


@pytest.fixture
def open_port() -> Iterator[int]:
    """A port on which this process listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_the_security_page_has_the_table_of_the_command() -> None:
    assert format_listener_table() in PAGE.read_text("utf-8")


def test_every_port_of_the_settings_is_declared() -> None:
    declared = {
        rule.setting
        for one in LISTENERS
        if one.profile == "penstock up" and isinstance(rule := one.port, SettingPort)
    }
    assert declared == {*load_settings().settings.ports, "dagster.viewer_port"}


def test_every_port_of_the_containers_is_declared() -> None:
    text = (DOCKER / "compose.yaml").read_text("utf-8")
    services = yaml.safe_load(text)["services"]
    exposed = {
        int(port)
        for file in DOCKER.glob("*.Dockerfile")
        for line in re.findall(r"^EXPOSE (.+)$", file.read_text("utf-8"), re.MULTILINE)
        for port in line.split()
    }
    named = set(re.findall(r'"(?:[a-z0-9.-]+:)?(\d{4})"', text))
    declared = {
        rule.number
        for one in LISTENERS
        if one.profile == "docker" and isinstance(rule := one.port, FixedPort)
    }
    assert exposed | {int(port) for port in named} | {5432} == declared
    programs = {one.program for one in LISTENERS if one.profile == "docker"}
    assert programs <= {name.rstrip("-123") for name in services}


def test_no_server_of_spark_is_declared_on_its_rest_port() -> None:
    rest_port = OpenSocket("127.0.0.1", 6066, "java")
    assert [one for one in LISTENERS if find_listener(rest_port, [one], KNOWN_PORTS)] == []


def test_a_master_in_a_container_starts_no_rest_server(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("penstock.infra.container.__main__.ensure_jars", lambda *_: [])
    monkeypatch.setenv("SPARK_DAEMON_JAVA_OPTS", "-Xss2m")
    options = _spark_environment(tmp_path)["SPARK_DAEMON_JAVA_OPTS"].split()
    assert options == ["-Dspark.master.rest.enabled=false", "-Dspark.ui.killEnabled=false", "-Xss2m"]


def test_a_socket_beyond_its_declared_reach_is_undeclared() -> None:
    broker = list_listeners("penstock up", "broker")
    assert find_listener(OpenSocket("127.0.0.1", 9092, "java"), broker, KNOWN_PORTS) == broker[0]
    assert find_listener(OpenSocket("0.0.0.0", 9092, "java"), broker, KNOWN_PORTS) is None
    assert find_listener(OpenSocket("::", 9092, "java"), broker, KNOWN_PORTS) is None


def test_a_port_outside_of_its_row_is_undeclared() -> None:
    master = list_listeners("env local", "spark-master")
    found = [
        port
        for port in range(19000, 19061)
        if find_listener(OpenSocket("127.0.0.1", port, "java"), master, KNOWN_PORTS)
    ]
    assert found == [19030, 19031]


def test_the_sockets_of_a_process_are_found_by_two_ways(open_port: int) -> None:
    assert list_open_sockets(os.getpid()) == read_sockets(os.getpid())
    assert open_port in {one.port for one in read_sockets(os.getpid())}
    assert open_port in {one.port for one in find_undeclared("env local", "spark-master", os.getpid(), {})}
