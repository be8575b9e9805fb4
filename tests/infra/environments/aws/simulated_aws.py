"""A simulated AWS: moto, plus the calls of the environment that moto does not support.

The provider is the real one; it calls a server on 127.0.0.1. Added to moto are configurations, bootstrap
addresses, users and updates of MSK, clusters that become active, EMR Serverless applications that are created
but not started, subscribers of budget notifications, and backups and policies of file systems.
"""

from __future__ import annotations

import io
import json
import re
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qsl, unquote

from moto.backends import get_backend
from moto.core import DEFAULT_ACCOUNT_ID
from moto.server import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server

REGION = "eu-west-1"
Environ = dict[str, Any]
StartResponse = Callable[..., Any]
Response = tuple[int, Any]


class Msk:
    """Configurations, users and updates of MSK clusters; moto has the clusters."""

    def __init__(self) -> None:
        self.configurations: dict[str, dict[str, Any]] = {}
        self.users: dict[str, list[str]] = {}
        self.operations: set[str] = set()

    def clusters(self) -> dict[str, Any]:
        return get_backend("kafka")[DEFAULT_ACCOUNT_ID][REGION].clusters  # type: ignore[no-any-return]

    def activate_clusters(self) -> None:
        for cluster in self.clusters().values():
            cluster.state = "ACTIVE"

    def create_configuration(self, body: dict[str, Any]) -> Response:
        prefix = f"arn:aws:kafka:{REGION}:{DEFAULT_ACCOUNT_ID}:configuration"
        arn = f"{prefix}/{body['name']}/{len(self.configurations) + 1}"
        revision = {"revision": 1, "creationTime": _CREATED_AT, "description": body.get("description", "")}
        self.configurations[arn] = {
            "arn": arn,
            "name": body["name"],
            "description": body.get("description", ""),
            "kafkaVersions": body.get("kafkaVersions", []),
            "creationTime": _CREATED_AT,
            "state": "ACTIVE",
            "latestRevision": revision,
            "serverProperties": body["serverProperties"],
        }
        return 200, self.configurations[arn]

    def update_configuration(self, arn: str, body: dict[str, Any]) -> Response:
        found = self.configurations[arn]
        found["serverProperties"] = body["serverProperties"]
        found["latestRevision"]["revision"] += 1
        return 200, {"arn": arn, "latestRevision": found["latestRevision"]}

    def describe_configuration(self, arn: str) -> Response:
        if arn not in self.configurations:
            return 400, {"message": "Configuration ARN does not exist", "__type": "BadRequestException"}
        return 200, self.configurations[arn]

    def bootstrap(self, arn: str) -> Response:
        cluster = self.clusters()[arn]
        sasl = (cluster.client_authentication or {}).get("sasl", {})
        hosts = [
            f"b-{n}.{cluster.cluster_name}.kafka.{REGION}.amazonaws.com"
            for n in range(1, int(cluster.number_of_broker_nodes) + 1)
        ]
        answer = {}
        if sasl.get("iam", {}).get("enabled"):
            answer["bootstrapBrokerStringSaslIam"] = ",".join(f"{host}:9098" for host in hosts[:3])
        if sasl.get("scram", {}).get("enabled"):
            answer["bootstrapBrokerStringSaslScram"] = ",".join(f"{host}:9096" for host in hosts[:3])
        return 200, answer

    def change(self, arn: str, operation_path: str, body: dict[str, Any]) -> Response:
        cluster = self.clusters()[arn]
        if operation_path == "nodes/count":
            cluster.number_of_broker_nodes = body["targetNumberOfBrokerNodes"]
        elif operation_path == "nodes/type":
            cluster.broker_node_group_info["instanceType"] = body["targetInstanceType"]
        elif operation_path == "nodes/storage":
            size = body["targetBrokerEBSVolumeInfo"][0]["volumeSizeGB"]
            cluster.broker_node_group_info["storageInfo"]["ebsStorageInfo"]["volumeSize"] = size
        elif operation_path == "configuration":
            cluster.configuration_info = body["configurationInfo"]
        else:
            return 404, {"message": f"no change {operation_path}"}
        operation = f"{arn.replace(':cluster/', ':cluster-operation/')}/{len(self.operations) + 1}"
        self.operations.add(operation)
        return 200, {"clusterArn": arn, "clusterOperationArn": operation}

    def scram(self, arn: str, method: str, body: dict[str, Any]) -> Response:
        users = self.users.setdefault(arn, [])
        if method == "POST":
            users += body["secretArnList"]
        elif method == "PATCH":
            self.users[arn] = [user for user in users if user not in body["secretArnList"]]
        return 200, {"clusterArn": arn, "secretArnList": users, "unprocessedScramSecrets": []}

    def answer(self, method: str, path: str, body: dict[str, Any]) -> Response | None:
        """Answer a call to MSK, or None for what moto answers."""
        self.activate_clusters()
        if path == "/v1/configurations":
            return self.create_configuration(body)
        if found := re.fullmatch(r"/v1/configurations/(.+?)(/revisions/\d+)?", path):
            if method == "PUT":
                return self.update_configuration(found[1], body)
            if method == "DELETE":
                del self.configurations[found[1]]
                return 200, {"arn": found[1], "state": "DELETING"}
            return self.describe_configuration(found[1])
        if found := re.fullmatch(r"/v1/operations/(.+)", path):
            info = {"clusterOperationArn": found[1], "operationState": "UPDATE_COMPLETE"}
            return 200, {"clusterOperationInfo": info}
        if found := re.fullmatch(r"/v1/clusters/(.+)/bootstrap-brokers", path):
            return self.bootstrap(found[1])
        if found := re.fullmatch(r"/v1/clusters/(.+)/scram-secrets", path):
            return self.scram(found[1], method, body)
        if found := re.fullmatch(r"/v1/clusters/(.+?)/(nodes/\w+|configuration)", path):
            return self.change(found[1], found[2], body)
        return None

    def answer_deleted_cluster(self, path: str) -> Response | None:
        """Answer for a deleted cluster, where moto fails."""
        found = re.fullmatch(r"/(?:v1|api/v2)/clusters/(arn:.+)", path)
        if found is None or found[1] in self.clusters():
            return None
        return 404, {"message": f"no cluster {found[1]}", "__type": "NotFoundException"}


class Budgets:
    """Tags and notification subscribers of budgets; moto has the budgets."""

    def __init__(self) -> None:
        self.tags: dict[str, list[dict[str, str]]] = {}

    def answer(self, action: str, body: dict[str, Any]) -> Response | None:
        """Answer a call to Budgets, or None for what moto answers."""
        if action == "DescribeSubscribersForNotification":
            return self.subscribers(body)
        if action == "ListTagsForResource":
            return 200, {"ResourceTags": self.tags.get(body["ResourceARN"], [])}
        if action == "CreateBudget":
            account, name = body["AccountId"], body["Budget"]["BudgetName"]
            self.tags[f"arn:aws:budgets::{account}:budget/{name}"] = body.get("ResourceTags", [])
        if action == "UpdateBudget":
            budgets = get_backend("budgets")[DEFAULT_ACCOUNT_ID]["aws"].budgets[body["AccountId"]]
            budgets[body["NewBudget"]["BudgetName"]].budget.update(body["NewBudget"])
            return 200, {}
        return None

    def subscribers(self, body: dict[str, Any]) -> Response:
        budgets = get_backend("budgets")[DEFAULT_ACCOUNT_ID]["aws"].budgets[body["AccountId"]]
        identity = _identity(body["Notification"])
        for notification in budgets[body["BudgetName"]].notifications:
            if _identity(notification.details) == identity:
                return 200, {"Subscribers": notification.subscribers}
        return 400, {"__type": "NotFoundException", "message": "no such notification"}


def _identity(notification: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in notification.items() if key != "NotificationState"}


class LostAttributes:
    """Attributes that moto drops from requests, and that later answers need."""

    def __init__(self) -> None:
        self.descriptions: dict[str, str] = {}

    def remember(self, service: str, form: dict[str, str], answer: bytes) -> None:
        """Remember attributes of a request that moto has answered."""
        if service == "ec2" and form.get("Action", "").startswith("AuthorizeSecurityGroup"):
            descriptions = [value for key, value in form.items() if key.endswith(".Description")]
            rules = re.findall(rb"<securityGroupRuleId>(.+?)</securityGroupRuleId>", answer)
            self.descriptions |= {rule.decode(): text for rule in rules for text in descriptions}
        if service == "rds" and form.get("Action") == "CreateDBInstance":
            database = _backend("rds").databases[form["DBInstanceIdentifier"]]
            database.performance_insights_enabled = form.get("EnablePerformanceInsights") == "true"
            database.performance_insights_kms_key_id = form.get("PerformanceInsightsKMSKeyId")
        if service == "rds" and form.get("Action") == "ModifyDBParameterGroup":
            for parameter in (
                _backend("rds").db_parameter_groups[form["DBParameterGroupName"]].parameters.values()
            ):
                parameter["Source"] = "user"

    def restore(self, service: str) -> None:
        """Restore the remembered attributes of a service before moto answers."""
        if service == "ec2":
            groups = _backend("ec2").groups.values()
            rules = [rule for vpc in groups for group in vpc.values() for rule in _rules(group)]
            for rule in rules:
                if rule.id in self.descriptions:
                    rule.ip_range["Description"] = self.descriptions[rule.id]
        if service == "ecs":
            for found in _backend("ecs").services.values():
                found.availability_zone_rebalancing = "DISABLED"


def _rules(group: Any) -> list[Any]:
    return [*group.ingress_rules, *group.egress_rules]


def _backend(service: str, region: str = REGION) -> Any:
    return get_backend(service)[DEFAULT_ACCOUNT_ID][region]  # type: ignore[literal-required]


class SimulatedAws:
    """A WSGI application that answers what moto does not support, and passes the rest to moto."""

    def __init__(self) -> None:
        self.moto = DomainDispatcherApplication(create_backend_app)
        self.msk = Msk()
        self.budgets = Budgets()
        self.lost_attributes = LostAttributes()
        self.calls: list[str] = []
        self.bodies: list[bytes] = []
        self._lock = threading.Lock()

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        raw = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        with self._lock:
            self.calls.append(f"{environ['REQUEST_METHOD']} {environ.get('PATH_INFO')}")
            self.bodies.append(raw)
        answer = self._answer(environ, raw)
        if answer is None:
            environ["wsgi.input"] = io.BytesIO(self._normalize_body(environ, raw))
            environ["CONTENT_LENGTH"] = str(len(environ["wsgi.input"].getvalue()))
            with self._lock:
                self.lost_attributes.restore(_service(environ))
            result = b"".join(self.moto(environ, start_response))
            with self._lock:
                self.lost_attributes.remember(
                    _service(environ), dict(parse_qsl(raw.decode(errors="replace"))), result
                )
                self._mark_created(environ)
            return [result]
        status, document = answer
        text = json.dumps(document).encode()
        headers = [("Content-Type", "application/json"), ("Content-Length", str(len(text)))]
        if status >= 400:
            headers.append(("x-amzn-ErrorType", document.get("__type", "BadRequestException")))
        start_response(f"{status} {'OK' if status < 400 else 'Error'}", headers)
        return [text]

    def _answer(self, environ: Environ, raw: bytes) -> Response | None:
        service = _service(environ)
        if service == "elasticfilesystem":
            return _answer_file_system(environ, raw)
        if service == "kafka":
            path = unquote(environ["PATH_INFO"])
            body = json.loads(raw or b"{}")
            return self.msk.answer(environ["REQUEST_METHOD"], path, body) or self.msk.answer_deleted_cluster(
                path
            )
        if service == "budgets":
            return self.budgets.answer(environ["HTTP_X_AMZ_TARGET"].rpartition(".")[2], json.loads(raw))
        return None

    def _normalize_body(self, environ: Environ, raw: bytes) -> bytes:
        """Write the type of an application in capitals, as moto expects."""
        if _service(environ) == "emr-serverless" and environ["REQUEST_METHOD"] == "POST" and raw:
            return raw.replace(b'"type":"spark"', b'"type":"SPARK"')
        return raw

    def _mark_created(self, environ: Environ) -> None:
        """Mark new applications as created but not started."""
        if _service(environ) == "emr-serverless" and environ["REQUEST_METHOD"] == "POST":
            for found in get_backend("emr-serverless")[DEFAULT_ACCOUNT_ID][REGION].applications.values():
                found.state = "CREATED"
                found.architecture = "X86_64"


def _answer_file_system(environ: Environ, raw: bytes) -> Response | None:
    """Answer calls for backups of file systems and for the deletion of their policies."""
    found = re.fullmatch(r"/2015-02-01/file-systems/(fs-\w+)/(backup-policy|policy)", environ["PATH_INFO"])
    if found is None or (found[2] == "policy" and environ["REQUEST_METHOD"] != "DELETE"):
        return None
    system = _backend("efs").file_systems_by_id[found[1]]
    if found[2] == "policy":
        system.file_system_policy = None
        return 200, {}
    if environ["REQUEST_METHOD"] == "PUT":
        system._backup = json.loads(raw)["BackupPolicy"]["Status"] == "ENABLED"
    return 200, {"BackupPolicy": {"Status": "ENABLED" if system._backup else "DISABLED"}}


def _service(environ: Environ) -> str:
    """Return the service that a request was signed for."""
    found = re.search(r"/([a-z0-9-]+)/aws4_request", environ.get("HTTP_AUTHORIZATION", ""))
    return found[1] if found else ""


# Shown by the provider, never compared.
_CREATED_AT = "2026-01-01T00:00:00Z"


@contextmanager
def run_simulated_aws() -> Iterator[tuple[SimulatedAws, str]]:
    """Run an empty AWS on a free port of 127.0.0.1; yield it and its URL."""
    application = SimulatedAws()
    server = make_server("127.0.0.1", 0, application, threaded=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield application, f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
