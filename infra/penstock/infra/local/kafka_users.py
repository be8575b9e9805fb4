"""Users and permissions of a secured cluster: one user for each part of the platform.

Passwords are generated, each in its own file. They reach the brokers over TLS as SCRAM credentials, and appear on
no command line, in no state and in no log.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialAlteration,
    UserScramCredentialUpsertion,
)

from penstock.infra.local.errors import LocalEnvironmentError
from penstock.infra.local.kafka_cluster import LocalKafkaCluster
from penstock.infra.local.private_files import read_or_create_secret

ADMIN_TIMEOUT_S = 30.0
SCRAM_ITERATIONS = 4096


@dataclass(frozen=True)
class KafkaPermission:
    """One operation that a user may do on all resources of a type."""

    kind: ResourceType
    operation: AclOperation


def _permissions_on(kind: ResourceType, *operations: AclOperation) -> tuple[KafkaPermission, ...]:
    return tuple(KafkaPermission(kind, operation) for operation in operations)


_TOPIC, _GROUP, _OPERATION = ResourceType.TOPIC, ResourceType.GROUP, AclOperation
USER_PERMISSIONS: dict[str, tuple[KafkaPermission, ...]] = {
    # Writes records, and reads its own records after a crash to resume without gaps or duplicates.
    "ingestion": (
        *_permissions_on(_TOPIC, _OPERATION.WRITE, _OPERATION.READ, _OPERATION.DESCRIBE),
        *_permissions_on(_GROUP, _OPERATION.READ),
    ),
    # Reads records, and commits offsets so that others see its lag.
    "host": (
        *_permissions_on(_TOPIC, _OPERATION.READ, _OPERATION.DESCRIBE),
        *_permissions_on(_GROUP, _OPERATION.READ, _OPERATION.DESCRIBE),
    ),
    # Creates and changes topics; neither reads nor writes records.
    "topics": _permissions_on(
        _TOPIC,
        _OPERATION.CREATE,
        _OPERATION.ALTER,
        _OPERATION.DELETE,
        _OPERATION.DESCRIBE,
        _OPERATION.ALTER_CONFIGS,
        _OPERATION.DESCRIBE_CONFIGS,
    ),
}


def user_secret_file(directory: Path, user: str) -> Path:
    """Return the file of a user's password."""
    return directory / "secrets" / user


def create_users(cluster: LocalKafkaCluster, brokers: int) -> None:
    """Create every user with password and permissions. A second call changes nothing."""
    client = AdminClient(cluster.admin_config(brokers))
    credentials: list[UserScramCredentialAlteration] = [
        _scram_credential(cluster.directory, user) for user in USER_PERMISSIONS
    ]
    _await_results(client.alter_user_scram_credentials(credentials), "making Kafka's users")
    bindings = [
        _acl_binding(user, permission)
        for user, permissions in USER_PERMISSIONS.items()
        for permission in permissions
    ]
    _await_results(client.create_acls(bindings), "saying what Kafka's users may do")


def _scram_credential(directory: Path, user: str) -> UserScramCredentialUpsertion:
    password = read_or_create_secret(user_secret_file(directory, user)).encode()
    scram_info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, SCRAM_ITERATIONS)
    return UserScramCredentialUpsertion(user, scram_info, password)


def _acl_binding(user: str, permission: KafkaPermission) -> AclBinding:
    return AclBinding(
        permission.kind,
        "*",
        ResourcePatternType.LITERAL,
        f"User:{user}",
        "*",
        permission.operation,
        AclPermissionType.ALLOW,
    )


def _await_results(futures: dict[Any, Future[Any]], operation: str) -> None:
    try:
        _wait_for_futures(futures.values())
    except KafkaException as error:
        raise LocalEnvironmentError(f"{operation} failed: {error.args[0].str()}. Apply again.") from error


def _wait_for_futures(futures: Iterable[Future[Any]]) -> None:
    for future in futures:
        future.result(ADMIN_TIMEOUT_S)
