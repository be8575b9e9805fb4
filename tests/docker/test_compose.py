"""The format of the compose file, and rules for its services."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import yaml
from tests.docker.compose_model import Compose

from penstock.platform.settings import Settings

DOCKER = Path(__file__).parents[2] / "docker"
ONE_TIME_SERVICES = {"streams", "topics"}
"""Services that end: they need no health check."""
SERVICES_WITHOUT_PORT = {"feed"}
"""Services without a port: they have no health check."""


def test_the_file_has_every_service(compose: Compose) -> None:
    assert set(compose.services) == {
        *("kafka-1", "kafka-2", "kafka-3", "spark-master", "spark-worker", "postgres"),
        *("code", "webserver", "daemon", "topics", "streams", "host", "feed"),
    }
    worker = compose.services["spark-worker"].deploy
    assert worker is not None
    assert worker.replicas == 2


def test_the_file_matches_the_published_schema() -> None:
    """Check the published schema of the format; the model of these tests is narrower."""
    checker = str(Path(sys.executable).with_name("check-jsonschema"))
    arguments = ["--builtin-schema", "vendor.compose-spec", str(DOCKER / "compose.yaml")]
    result = subprocess.run([checker, *arguments], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr


def test_unknown_top_level_names_are_shared_parts(compose: Compose) -> None:
    assert all(name.startswith("x-") for name in compose.model_extra or {})


def test_every_long_running_service_has_a_health_check(compose: Compose) -> None:
    without_check = {name for name, service in compose.services.items() if service.healthcheck is None}
    assert without_check == ONE_TIME_SERVICES | SERVICES_WITHOUT_PORT


def test_dependencies_exist_and_can_be_met(compose: Compose) -> None:
    for name, service in compose.services.items():
        for other, dependency in service.depends_on.items():
            required = compose.services[other]
            if dependency.condition == "service_healthy":
                assert required.healthcheck is not None, f"{name} waits for {other}"
            else:
                assert other in ONE_TIME_SERVICES, f"{name} waits for {other}"


def test_no_service_that_ends_is_the_last_of_a_chain(compose: Compose) -> None:
    """`docker compose up --wait` ends with 1 if a service exits on which no other depends."""
    required = {other for service in compose.services.values() for other in service.depends_on}
    assert required >= ONE_TIME_SERVICES


def test_the_output_of_steps_is_on_a_volume_that_the_webserver_reads(compose: Compose) -> None:
    instance = yaml.safe_load((DOCKER / "dagster" / "dagster.yaml").read_text("utf-8"))
    variable = instance["compute_logs"]["config"]["base_dir"]["env"]
    for name in ("code", "webserver"):
        service = compose.services[name]
        assert service.environment[variable].startswith("/var/lib/dagster/"), name
        assert "dagster:/var/lib/dagster" in service.volumes, name


def test_own_containers_have_minimal_privileges(compose: Compose) -> None:
    for name, service in compose.services.items():
        assert "no-new-privileges:true" in service.security_opt, name
        if service.build is not None:
            assert service.read_only, name
            assert service.cap_drop == ["ALL"], name
            assert service.init, name


def test_only_the_webserver_is_published_on_loopback(compose: Compose) -> None:
    published = {name: service.ports for name, service in compose.services.items() if service.ports}
    assert published == {"webserver": ["127.0.0.1:3000:3000"]}


def test_volumes_and_secrets_are_declared_and_used(compose: Compose) -> None:
    mounted = {
        mount.split(":")[0]
        for service in compose.services.values()
        for mount in service.volumes
        if mount[0] != "."
    }
    used = {secret for service in compose.services.values() for secret in service.secrets}
    assert mounted == set(compose.volumes)
    assert used == set(compose.secrets)


def test_the_default_streams_are_started(compose: Compose) -> None:
    command = compose.services["streams"].command or []
    assert tuple(command[command.index("start") + 1 : command.index("--wait")]) == (
        Settings.model_fields["streams"].default
    )


def test_services_share_one_home(compose: Compose) -> None:
    """The schema registry is in the home: all services must use the same one."""
    with_home = {name for name, service in compose.services.items() if "PENSTOCK_HOME" in service.environment}
    homes = {
        name for name, service in compose.services.items() if "home:/var/lib/penstock" in service.volumes
    }
    assert homes == {"topics", "feed", "host", "code", "spark-worker"}
    assert with_home - homes == {"streams"}, "it uses only the control store"


def test_tmp_allows_execution_of_unpacked_libraries(compose: Compose) -> None:
    """A tmpfs is noexec by default, but zstd and snappy unpack libraries into it."""
    for name, service in compose.services.items():
        assert service.tmpfs == ([] if name == "postgres" else ["/tmp:exec"]), name


def test_the_code_server_has_the_spark_settings_of_the_host(compose: Compose) -> None:
    """Runs are children of the code server: they need Java, jars, packages and settings of the host."""
    code, host = compose.services["code"], compose.services["host"]
    assert code.image == host.image == "penstock/host"
    host_variables = {
        name: value for name, value in host.environment.items() if not name.startswith("PENSTOCK_SPARK__")
    }
    assert host_variables.items() <= code.environment.items()


def test_no_secret_is_in_the_file(compose: Compose) -> None:
    text = (DOCKER / "compose.yaml").read_text("utf-8")
    assert "PASSWORD:" not in text.replace("_FILE:", "")
    for service in compose.services.values():
        for value in service.environment.values():
            assert "@" not in value or ":" not in value.split("//")[1].split("@")[0], value


def test_every_image_has_its_dockerfile(compose: Compose) -> None:
    dockerfiles = {service.build.dockerfile for service in compose.services.values() if service.build}
    assert dockerfiles == {f"docker/{path.name}" for path in DOCKER.glob("*.Dockerfile")}


def test_brokers_have_the_same_voters(compose: Compose) -> None:
    commands = [compose.services[f"kafka-{node}"].command or [] for node in (1, 2, 3)]
    voters = {command[command.index("--voters") + 1] for command in commands}
    assert voters == {"1@kafka-1:9093,2@kafka-2:9093,3@kafka-3:9093"}
    assert len({command[command.index("--cluster") + 1] for command in commands}) == 1


def test_the_workspace_has_the_address_of_the_code_server(compose: Compose) -> None:
    workspace = yaml.safe_load((DOCKER / "dagster" / "workspace.yaml").read_text("utf-8"))
    server = workspace["load_from"][0]["grpc_server"]
    environment = compose.services["webserver"].environment
    assert environment[server["host"]["env"]] == "code"
    command = compose.services["code"].command or []
    assert command[command.index("-p") + 1] == environment[server["port"]["env"]]
    assert command[command.index("--location-name") + 1] == server["location_name"]


def test_dagster_and_the_control_store_have_separate_databases(compose: Compose) -> None:
    environment = compose.services["code"].environment
    assert environment["PENSTOCK_CONTROL_URL"].rpartition("/")[2] == "penstock"
    assert environment["PENSTOCK_DAGSTER__STORAGE_URL"].rpartition("/")[2] == "dagster"
    assert "CREATE DATABASE dagster;" in (DOCKER / "postgres" / "dagster.sql").read_text("utf-8")
    assert "./postgres:/docker-entrypoint-initdb.d:ro" in compose.services["postgres"].volumes
