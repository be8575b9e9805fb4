"""The life cycle of the environment `aws`: real Terraform and provider, simulated AWS.

The tests build on each other and run in this order.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.infra.environments.outputs import parse_outputs, platform_settings
from penstock.infra.environments.settings_file import apply_settings
from penstock.infra.terraform import PlanAction, TerraformPlan, TerraformWorkspace
from penstock.infra.terraform.errors import PlanFailedError
from penstock.platform.settings import Settings, load_settings

pytestmark = [pytest.mark.whole, pytest.mark.timeout(900)]

Environment = Callable[..., TerraformWorkspace]


def find_values(plan: TerraformPlan, kind: str) -> list[dict[str, Any]]:
    return [resource.values for resource in plan.resources if resource.kind == kind]


def find_statements(plan: TerraformPlan) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every statement of every policy, with the address of its resource."""
    for resource in plan.resources:
        for name in ("policy", "assume_role_policy"):
            text = resource.values.get(name)
            if text and resource.kind != "aws_ecr_lifecycle_policy":
                for statement in json.loads(text)["Statement"]:
                    yield resource.address, statement


def as_list(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value


@pytest.fixture(scope="module")
def first_plan(environment: Environment) -> TerraformPlan:
    """The plan of an environment that was never applied."""
    return environment().plan()


@pytest.fixture(scope="module")
def applied(environment: Environment, first_plan: TerraformPlan) -> TerraformWorkspace:
    workspace = environment()
    workspace.apply(first_plan)
    return workspace


@pytest.fixture(scope="module")
def plan_after_apply(applied: TerraformWorkspace) -> TerraformPlan:
    """The plan after the apply, in which every value is known."""
    return applied.plan()


def test_a_first_plan_only_creates(first_plan: TerraformPlan) -> None:
    creating = [change for change in first_plan.changes if change.has_effect]
    assert first_plan.count_actions(PlanAction.CREATE) == len(creating) > 80


def test_a_plan_right_after_apply_shows_no_change(plan_after_apply: TerraformPlan) -> None:
    assert plan_after_apply.is_empty, [(c.address, c.action, c.values) for c in plan_after_apply.changes]


def test_outputs_have_the_common_form(applied: TerraformWorkspace) -> None:
    outputs = {name: output.value for name, output in applied.read_outputs().items()}
    assert outputs["kafka"]["brokers"] == [
        f"b-{n}.penstock.kafka.eu-west-1.amazonaws.com:9096" for n in (1, 2, 3)
    ]
    assert outputs["spark"]["kind"] == "emr-serverless"
    assert outputs["warehouse"] == {"root": "s3://penstock-warehouse-123456789012-eu-west-1/warehouse"}
    assert "@" in outputs["control_store"]["url"]
    assert outputs["secrets"]["kafka"]["host"] == "AmazonMSK_penstock_host"
    assert outputs["secrets"]["database"] == {
        "dagster": "penstock/database/dagster",
        "penstock": "penstock/database/penstock",
    }


def test_outputs_contain_all_settings_of_the_platform(
    applied: TerraformWorkspace, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The settings that `penstock env use aws` writes are loaded and used by a Kafka client."""
    clear_settings_variables(monkeypatch)
    monkeypatch.setenv("PENSTOCK_ROOT", str(tmp_path))
    text = apply_settings("", platform_settings(parse_outputs(applied.read_outputs())), "aws")
    (tmp_path / "penstock.toml").write_text(text)
    settings = load_settings().settings
    assert settings.spark.master == "local[*]"
    assert settings.control_secret == "env:CONTROL_STORE"
    assert settings.kafka.layout == "production"
    for user in ("ingestion", "host", "topics"):
        monkeypatch.setenv(f"KAFKA_{user.upper()}", json.dumps({"username": user, "password": f"of {user}"}))
        client = settings.kafka.client_config(user)
        assert (client["sasl.username"], client["sasl.password"]) == (user, f"of {user}")
        assert client["sasl.mechanism"] == "SCRAM-SHA-512"


def find_containers(plan: TerraformPlan) -> dict[str, dict[str, Any]]:
    """Return the container of each task by the name of its service."""
    definitions = [
        container
        for definition in find_values(plan, "aws_ecs_task_definition")
        for container in json.loads(definition["container_definitions"])
    ]
    return {container["name"]: container for container in definitions}


def clear_settings_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("PENSTOCK_")]:
        monkeypatch.delenv(name)


def load_container_settings(container: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Load the platform's settings from the variables of a container."""
    clear_settings_variables(monkeypatch)
    for variable in container["environment"]:
        monkeypatch.setenv(variable["name"], variable["value"])
    loaded = load_settings()
    assert loaded.unknown_warnings == ()
    return loaded.settings


def test_containers_have_valid_platform_settings(
    plan_after_apply: TerraformPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    containers = find_containers(plan_after_apply)
    assert containers.keys() == {"host", "code", "webserver", "daemon"}
    for name in ("host", "code"):
        settings = load_container_settings(containers[name], monkeypatch)
        assert settings.kafka.bootstrap == ",".join(
            f"b-{n}.penstock.kafka.eu-west-1.amazonaws.com:9096" for n in (1, 2, 3)
        )
        assert settings.kafka.layout == "production"
        assert settings.warehouse.startswith("s3://penstock-warehouse-")
        assert settings.control_url.startswith("postgresql+psycopg://penstock@")
        assert "/penstock?sslmode=verify-full&" in settings.control_url
        assert settings.home == Path("/var/lib/penstock")
    for name in ("code", "webserver", "daemon"):
        storage = str(load_container_settings(containers[name], monkeypatch).dagster.storage_url)
        assert storage.startswith("postgresql://dagster@")
        assert "/dagster?sslmode=verify-full&" in storage


def test_host_and_runs_share_a_persistent_home(plan_after_apply: TerraformPlan) -> None:
    (system,), (access_point,) = (
        find_values(plan_after_apply, "aws_efs_file_system"),
        find_values(plan_after_apply, "aws_efs_access_point"),
    )
    for definition in find_values(plan_after_apply, "aws_ecs_task_definition"):
        (container,) = json.loads(definition["container_definitions"])
        mounted = {mount["sourceVolume"]: mount["containerPath"] for mount in container["mountPoints"]}
        shared = [volume for volume in definition["volume"] if volume["name"] == "home"]
        if container["name"] in ("webserver", "daemon"):
            assert (mounted, shared) == ({"tmp": "/tmp"}, [])
            continue
        assert mounted == {"tmp": "/tmp", "home": "/var/lib/penstock"}
        (configuration,) = shared[0]["efs_volume_configuration"]
        assert (configuration["file_system_id"], configuration["transit_encryption"]) == (
            system["id"],
            "ENABLED",
        )
        assert configuration["authorization_config"] == [
            {"access_point_id": access_point["id"], "iam": "ENABLED"}
        ]


SECRETS = {
    "host": {"CONTROL_STORE", "KAFKA_HOST"},
    "code": {"CONTROL_STORE", "PGPASSWORD", "KAFKA_HOST", "KAFKA_INGESTION", "KAFKA_TOPICS"},
    "webserver": {"PGPASSWORD"},
    "daemon": {"PGPASSWORD"},
}


def test_a_service_can_read_only_its_own_secrets(plan_after_apply: TerraformPlan) -> None:
    containers = find_containers(plan_after_apply)
    secret_names = {
        name: {secret["name"] for secret in container["secrets"]} for name, container in containers.items()
    }
    assert secret_names == SECRETS
    policies = {
        policy["role"]: policy["policy"] for policy in find_values(plan_after_apply, "aws_iam_role_policy")
    }
    for name, container in containers.items():
        referenced = {secret_arn(secret["valueFrom"]) for secret in container["secrets"]}
        allowed = {
            resource
            for statement in json.loads(policies[f"penstock-start-{name}"])["Statement"]
            if statement["Action"] == "secretsmanager:GetSecretValue"
            for resource in as_list(statement["Resource"])
        }
        assert allowed == referenced


def secret_arn(reference: str) -> str:
    """Return the ARN of a secret reference, which may name a key of the secret."""
    return ":".join(reference.split(":")[:7])


def test_each_service_has_its_own_security_group(plan_after_apply: TerraformPlan) -> None:
    groups = {group["id"]: group["name"] for group in find_values(plan_after_apply, "aws_security_group")}
    group_names = {
        service["name"]: [
            groups[group_id] for group_id in service["network_configuration"][0]["security_groups"]
        ]
        for service in find_values(plan_after_apply, "aws_ecs_service")
    }
    assert group_names == {name: [f"penstock-{name}"] for name in ("host", "code", "webserver", "daemon")}


def test_no_service_starts_before_its_secrets_have_values(plan_after_apply: TerraformPlan) -> None:
    assert {service["desired_count"] for service in find_values(plan_after_apply, "aws_ecs_service")} == {0}


def test_no_policy_allows_a_wildcard_action(plan_after_apply: TerraformPlan) -> None:
    statements = list(find_statements(plan_after_apply))
    assert len(statements) > 20
    for address, statement in statements:
        if statement["Effect"] == "Allow":
            assert not [a for a in as_list(statement["Action"]) if "*" in a], address
            assert statement.get("Principal") != "*", address
            allows_everybody = statement.get("Principal", {}).get("AWS") == "*"
            assert not allows_everybody or "aws_vpc_endpoint" in address, address


def test_nothing_is_public(plan_after_apply: TerraformPlan) -> None:
    rules = find_values(plan_after_apply, "aws_vpc_security_group_ingress_rule")
    assert rules
    assert not [rule for rule in rules if rule["cidr_ipv4"] or rule["cidr_ipv6"]]
    assert not [
        subnet for subnet in find_values(plan_after_apply, "aws_subnet") if subnet["map_public_ip_on_launch"]
    ]
    assert not find_values(plan_after_apply, "aws_internet_gateway")
    assert not find_values(plan_after_apply, "aws_nat_gateway")
    assert not find_values(plan_after_apply, "aws_route")
    assert [
        database["publicly_accessible"] for database in find_values(plan_after_apply, "aws_db_instance")
    ] == [False]
    blocks = find_values(plan_after_apply, "aws_s3_bucket_public_access_block")
    assert len(blocks) == len(find_values(plan_after_apply, "aws_s3_bucket"))
    assert all(
        block[name] for block in blocks for name in block if name.startswith(("block", "ignore", "res"))
    )


def test_everything_is_encrypted_with_the_customer_key(plan_after_apply: TerraformPlan) -> None:
    (key,) = find_values(plan_after_apply, "aws_kms_key")
    key_arn = key["arn"]
    (cluster,) = find_values(plan_after_apply, "aws_msk_cluster")
    assert cluster["encryption_info"][0]["encryption_at_rest_kms_key_arn"] == key_arn
    (database,) = find_values(plan_after_apply, "aws_db_instance")
    assert database["storage_encrypted"]
    assert {database["kms_key_id"], database["performance_insights_kms_key_id"]} == {key_arn}
    assert {group["kms_key_id"] for group in find_values(plan_after_apply, "aws_cloudwatch_log_group")} == {
        key_arn
    }
    assert {
        secret["kms_key_id"] for secret in find_values(plan_after_apply, "aws_secretsmanager_secret")
    } == {key_arn}
    (home,) = find_values(plan_after_apply, "aws_efs_file_system")
    assert (home["encrypted"], home["kms_key_id"]) == (True, key_arn)
    assert {topic["kms_master_key_id"] for topic in find_values(plan_after_apply, "aws_sns_topic")} == {
        key_arn
    }


def test_every_resource_is_tagged_with_its_environment(plan_after_apply: TerraformPlan) -> None:
    for resource in plan_after_apply.resources:
        tags = resource.values.get("tags_all")
        assert tags is None or tags.get("environment") == "penstock", resource.address


def test_the_state_is_in_the_bucket_without_passwords(applied: TerraformWorkspace, aws: Any) -> None:
    import boto3

    client = boto3.client(
        "s3", endpoint_url=aws[1], region_name="eu-west-1", aws_access_key_id="t", aws_secret_access_key="t"
    )
    state = client.get_object(Bucket="penstock-states", Key="penstock.tfstate")["Body"].read().decode()
    passwords = [
        instance["attributes"].get("password")
        for resource in json.loads(state)["resources"]
        for instance in resource["instances"]
    ]
    assert set(passwords) == {None}
    assert "secret_string" not in state


def test_scaling_up_changes_resources_in_place(applied: TerraformWorkspace, environment: Environment) -> None:
    larger = environment(brokers=6, broker_storage_gb=300, workers=3, monthly_usd=3000)
    plan = larger.plan()
    changes = {(change.kind, change.action) for change in plan.changes if change.has_effect}
    assert changes == {
        ("aws_msk_cluster", PlanAction.UPDATE),
        ("aws_emrserverless_application", PlanAction.UPDATE),
        ("aws_budgets_budget", PlanAction.UPDATE),
        ("aws_cloudwatch_metric_alarm", PlanAction.CREATE),
    }
    assert plan.count_actions(PlanAction.CREATE) == 3, "each new broker has an alarm for its disk"
    larger.apply(plan)
    again = larger.plan()
    assert again.is_empty
    (cluster,) = find_values(again, "aws_msk_cluster")
    assert cluster["number_of_broker_nodes"] == 6


def test_kafka_users_are_added_and_services_start_once_secrets_have_values(
    applied: TerraformWorkspace, environment: Environment
) -> None:
    filled = environment(
        brokers=6,
        broker_storage_gb=300,
        workers=3,
        monthly_usd=3000,
        secrets_filled=True,
    )
    plan = filled.plan()
    assert {change.kind for change in plan.changes if change.has_effect} == {
        "aws_msk_scram_secret_association",
        "aws_ecs_service",
    }
    filled.apply(plan)
    again = filled.plan()
    assert again.is_empty
    assert {service["desired_count"] for service in find_values(again, "aws_ecs_service")} == {1}


def test_iam_authentication_uses_no_passwords_and_starts_no_services(environment: Environment) -> None:
    plan = environment(kafka_authentication="iam", secrets_filled=True).plan()
    assert {service["desired_count"] for service in find_values(plan, "aws_ecs_service")} == {0}
    for container in find_values(plan, "aws_ecs_task_definition"):
        assert "KAFKA_" not in str(container["container_definitions"]).replace("PENSTOCK_KAFKA__", "")


def test_an_invalid_name_is_refused_by_the_plan(environment: Environment) -> None:
    with pytest.raises(PlanFailedError, match="3 to 21 small letters"):
        environment(name="Not_A_Name").plan()


def test_destroy_removes_every_resource(environment: Environment, aws: Any) -> None:
    workspace = environment(secrets_filled=True)
    workspace.apply(workspace.plan(destroy=True))
    assert workspace.list_resources() == ()
    from moto.backends import get_backend

    assert not get_backend("kafka")["123456789012"]["eu-west-1"].clusters
    applications = get_backend("emr-serverless")["123456789012"]["eu-west-1"].applications.values()
    assert {application.state for application in applications} == {"TERMINATED"}
    assert set(get_backend("s3")["123456789012"]["aws"].buckets) == {"penstock-states"}
    assert not get_backend("rds")["123456789012"]["eu-west-1"].databases
