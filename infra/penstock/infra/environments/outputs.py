"""The outputs of an environment as one type, the same for every environment."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from penstock.infra.kafka_access import KafkaAccess
from penstock.infra.terraform import TerraformOutput
from penstock.infra.terraform.errors import OutputError


class KafkaSecurityOutputs(msgspec.Struct, frozen=True):
    """How clients talk to brokers: Kafka's protocol and mechanism, the certificate they trust.

    `secrets` says for each of the platform's users where its password is: a file, or env:NAME for a variable.
    """

    protocol: str
    mechanism: str
    ca: str
    secrets: dict[str, str]


class KafkaOutputs(msgspec.Struct, frozen=True):
    """The bootstrap servers."""

    brokers: tuple[str, ...]
    security: KafkaSecurityOutputs
    layout: str = "local"
    """The layout of the contracts that sets partitions and replicas here."""

    @property
    def bootstrap(self) -> str:
        """The bootstrap servers in the format of clients."""
        return ",".join(self.brokers)

    @property
    def kafka_access(self) -> KafkaAccess:
        """The access data that client settings are built from."""
        security = self.security
        return KafkaAccess(
            self.bootstrap, security.protocol, security.mechanism, security.ca, security.secrets
        )


class SparkOutputs(msgspec.Struct, frozen=True):
    """Spark: `standalone` with a master's URL, or `emr-serverless` with an application and its jobs' role."""

    kind: str
    master: str
    application: str
    job_role: str
    secret: str


class WarehouseOutputs(msgspec.Struct, frozen=True):
    """Location of the tables: a folder or the URL of an object store."""

    root: str


class ControlStoreOutputs(msgspec.Struct, frozen=True):
    """URL of the control store without password; `secret` is a secret reference: a file, or env:NAME."""

    url: str
    secret: str


class EnvironmentOutputs(msgspec.Struct, frozen=True):
    """Everything that the platform needs to know about an environment. Contains no secret."""

    kafka: KafkaOutputs
    spark: SparkOutputs
    warehouse: WarehouseOutputs
    control_store: ControlStoreOutputs


def parse_outputs(outputs: Mapping[str, TerraformOutput]) -> EnvironmentOutputs:
    """Parse the outputs; additional ones are ignored."""
    values = {name: output.value for name, output in outputs.items()}
    try:
        return msgspec.convert(values, type=EnvironmentOutputs)
    except msgspec.ValidationError as error:
        raise OutputError(
            f"The environment's outputs do not have the common form: {error}. "
            "Apply the environment again; every one has kafka, spark, warehouse and control_store."
        ) from error


def platform_settings(outputs: EnvironmentOutputs) -> dict[str, str]:
    """Return the settings that an environment sets, by dotted name. Secrets are references."""
    security = outputs.kafka.security
    settings = {
        "warehouse": outputs.warehouse.root,
        "control_url": outputs.control_store.url,
        "control_secret": outputs.control_store.secret,
        "kafka.bootstrap": outputs.kafka.bootstrap,
        "kafka.layout": outputs.kafka.layout,
        "kafka.security.protocol": security.protocol,
        "kafka.security.mechanism": security.mechanism,
        "kafka.security.ca": security.ca,
        **{f"kafka.security.secrets.{user}": reference for user, reference in security.secrets.items()},
        "spark.master": outputs.spark.master,
        "spark.secret": outputs.spark.secret,
    }
    return {name: value for name, value in settings.items() if value}
