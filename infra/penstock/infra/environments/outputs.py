"""The outputs of an environment in one typed form, whichever environment it is."""

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
    """The brokers that clients connect to first."""

    brokers: tuple[str, ...]
    security: KafkaSecurityOutputs
    layout: str = "local"
    """Whose partitions and copies topics have here, by their contracts."""

    @property
    def bootstrap(self) -> str:
        """The brokers in the form that clients take."""
        return ",".join(self.brokers)

    @property
    def kafka_access(self) -> KafkaAccess:
        """What a client's settings are made from."""
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
    """Where tables live: a folder or an object store's address."""

    root: str


class ControlStoreOutputs(msgspec.Struct, frozen=True):
    """Where the control store is, without a password; `secret` is the place of one: a file, or env:NAME."""

    url: str
    secret: str


class EnvironmentOutputs(msgspec.Struct, frozen=True):
    """All that the platform needs to know of an environment. No secret is in it."""

    kafka: KafkaOutputs
    spark: SparkOutputs
    warehouse: WarehouseOutputs
    control_store: ControlStoreOutputs


def parse_outputs(outputs: Mapping[str, TerraformOutput]) -> EnvironmentOutputs:
    """Make the typed form; what an environment has beyond it is left out."""
    values = {name: output.value for name, output in outputs.items()}
    try:
        return msgspec.convert(values, type=EnvironmentOutputs)
    except msgspec.ValidationError as error:
        raise OutputError(
            f"The environment's outputs do not have the common form: {error}. "
            "Apply the environment again; every one has kafka, spark, warehouse and control_store."
        ) from error


def platform_settings(outputs: EnvironmentOutputs) -> dict[str, str]:
    """The platform's settings that an environment decides, by their dotted names. Secrets are named in them."""
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
