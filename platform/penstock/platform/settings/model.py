"""All settings, with defaults that work on one machine."""

import os
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, PlainValidator, field_validator, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from penstock.core.file_access import FileAccess
from penstock.core.kafka_client import BrokerAccess
from penstock.core.secret_reference import PublicAddress, SecretReference
from penstock.core.settings import DurationMs, SettingsSection, parse_setting
from penstock.engine.errors import StorageAddressError
from penstock.engine.host_settings import HostSettings
from penstock.engine.storage import ObjectStoreConfig, ObjectStorePath, StoragePath, parse_storage_path
from penstock.infra.kafka_access import KafkaAccess, broker_access, kafka_client_config
from penstock.ingestion.contracts import UNLIMITED, Unlimited
from penstock.platform.settings.kafka_security import KafkaSecuritySettings
from penstock.platform.settings.launch_rules import find_launch_conflict

PortNumber = Annotated[int, Field(ge=1, le=65535)]
LOOPBACK = "127.0.0.1"
DAY_MS = 86_400_000


def split_names(value: object) -> object:
    """Return the names in a text that a variable has, separated by commas; a list as it is."""
    return [name.strip() for name in value.split(",") if name.strip()] if isinstance(value, str) else value


def _parse_future_skew(value: object) -> DurationMs | Unlimited:
    """Parse a duration or `unlimited`; raise ValueError for anything else."""
    if value == UNLIMITED:
        return UNLIMITED
    try:
        return parse_setting(value)
    except ValueError as error:
        raise ValueError(f"{error} Or write 'unlimited'.") from None


class KafkaSettings(SettingsSection):
    """The broker: a local one on these ports, or an external one if `bootstrap` is set."""

    port: PortNumber = Field(9092, description="port of the local broker")
    controller_port: PortNumber = Field(9093, description="port of the local broker's controller")
    heap_mb: int = Field(256, ge=64, description="heap of the local broker, in MB")
    bootstrap: str | None = Field(
        None, description="bootstrap servers of an external broker; no local one starts then"
    )
    registry: PublicAddress | None = Field(
        None, description="URL of a schema registry; default: a folder in the home folder"
    )
    registry_login: SecretReference = Field("", description="secret reference: user:password of the registry")
    layout: str = Field("local", description="which layout of the contracts sets partitions and replicas")
    security: KafkaSecuritySettings = KafkaSecuritySettings()

    @model_validator(mode="after")
    def _check_security_has_bootstrap(self) -> Self:
        if self.security.is_secured and not self.bootstrap:
            raise ValueError(
                "kafka.security needs an external broker. Set kafka.bootstrap, or run `penstock env use NAME`"
            )
        return self

    @model_validator(mode="after")
    def _check_login_has_registry(self) -> Self:
        if self.registry_login and not self.registry:
            raise ValueError("kafka.registry_login needs a registry over HTTP. Set kafka.registry as well")
        return self

    @property
    def bootstrap_servers(self) -> str:
        """The bootstrap servers that clients use."""
        return self.bootstrap or f"{LOOPBACK}:{self.port}"

    @property
    def kafka_access(self) -> KafkaAccess:
        """What client settings are built from, after the password of a user was read."""
        security = self.security
        return KafkaAccess(
            self.bootstrap_servers,
            security.protocol,
            security.mechanism,
            security.ca,
            security.secrets.model_dump(),
        )

    def client_config(self, user: Literal["ingestion", "host", "topics"]) -> dict[str, str]:
        """Return the librdkafka settings of one of the platform's users, including the password."""
        return kafka_client_config(self.kafka_access, user)

    def broker_access(self, user: Literal["ingestion", "host", "topics"]) -> BrokerAccess:
        """Return how the engine's clients reach the broker as one of the platform's users, with the password."""
        return broker_access(self.kafka_access, user)


class SparkSettings(SettingsSection):
    """Where Spark runs, and with which resources."""

    master: str = Field("local[*]", description="local[*], spark://host:port, yarn or k8s://address")
    launch: Literal["session", "submit"] = Field(
        "session", description="what starts the stream host's Spark: a session in the host, or spark-submit"
    )
    deploy_mode: Literal["client", "cluster"] = Field(
        "client", description="where spark-submit runs the driver: on this machine, or on yarn or k8s://"
    )
    properties: str = Field(
        "", description="file of your own Spark properties for spark-submit, such as image or queue; they win"
    )
    driver_host: str = Field(
        LOOPBACK, description="name or address at which Spark's workers reach the driver"
    )
    secret: SecretReference = Field("", description="secret reference: the secret of a spark:// master")
    driver_memory: str = Field("1g", pattern=r"^\d+[mg]$", description="heap of the driver")
    executor_memory: str = Field(
        "512m", pattern=r"^\d+[mg]$", description="heap of each executor, with spark://host:port"
    )
    host_cores: int = Field(
        2, ge=1, description="maximum cores of a stream host on spark://host:port; leave some for commands"
    )
    command_cores: int = Field(
        1, ge=1, description="maximum cores of each replay, backfill, audit or check that runs beside hosts"
    )
    shuffle_partitions: int = Field(
        default_factory=lambda: os.cpu_count() or 1, ge=1, description="number of shuffle partitions"
    )


class DagsterSettings(SettingsSection):
    """The orchestrator's processes and storage."""

    port: PortNumber = Field(3000, description="port of the webserver")
    viewer_port: Annotated[int, Field(ge=0, le=65535)] = Field(
        0, description="port of a second, read-only webserver; 0 for none"
    )
    hosts: Annotated[tuple[str, ...], NoDecode] = Field(
        (), description="names by which browsers reach the webserver, beside localhost; separated by commas"
    )
    code_port: PortNumber = Field(4000, description="port of the code server")
    storage_url: str | None = Field(None, description="postgresql://…; default: SQLite in the home folder")
    first_day: str = Field(
        "2026-01-01", pattern=r"^\d{4}-\d\d-\d\d$", description="first partition of backfills"
    )
    nightly_backfills: tuple[str, ...] = Field(
        (), description="pipelines that a nightly backfill runs over the archived records of the day before"
    )
    owner: str = Field(
        "team:data",
        pattern=r"^(team:.+|.+@.+)$",
        description="owner of assets: team:NAME, or an email address",
    )
    tick_retention_days: int = Field(7, ge=1, description="days that ticks of sensors and schedules are kept")
    spark_runs: int = Field(
        2, ge=1, description="maximum concurrent replays, backfills, audits and checks; others wait"
    )
    report_interval: DurationMs = Field(
        DurationMs(30_000), ge=0, description="minimum time between materializations of one stream"
    )

    @field_validator("hosts", mode="before")
    @classmethod
    def _split_hosts(cls, value: object) -> object:
        return split_names(value)


class ConsoleSettings(SettingsSection):
    """The web console: its address, and who may act in it."""

    port: PortNumber = Field(3030, description="port of the console")
    url: PublicAddress = Field(
        "",
        pattern=r"^(|https?://.+/)$",
        description="address in links from Dagster, with a slash at its end; `penstock up` has its own",
    )
    hosts: Annotated[tuple[str, ...], NoDecode] = Field(
        (), description="names by which browsers reach the console, beside localhost; separated by commas"
    )
    role: Literal["operator", "viewer"] = Field(
        "operator", description="what callers may do without a proxy: act, or only read"
    )
    user_header: str = Field(
        "",
        pattern=r"^[A-Za-z0-9-]*$",
        description="header in which a proxy names its user, such as X-Forwarded-User; then `operators` may act",
    )
    operators: Annotated[tuple[str, ...], NoDecode] = Field(
        (), description="users of the proxy who may act; separated by commas"
    )

    @field_validator("hosts", "operators", mode="before")
    @classmethod
    def _split_names(cls, value: object) -> object:
        return split_names(value)


class MaintenanceSettings(SettingsSection):
    """Retention times, and when maintenance runs."""

    schedule: str = Field("0 3 * * *", description="cron schedule of maintenance, in UTC")
    file_retention: DurationMs = Field(
        DurationMs(7 * DAY_MS), ge=DAY_MS, description="how long files that tables no longer use are kept"
    )
    batch_retention: DurationMs = Field(
        DurationMs(30 * DAY_MS), ge=DAY_MS, description="how long the control store keeps batches"
    )
    event_retention: DurationMs = Field(
        DurationMs(30 * DAY_MS), ge=DAY_MS, description="how long Dagster keeps runs and asset events"
    )


class ObjectStoreSettings(SettingsSection):
    """The object store, if `warehouse` is s3://…; credentials are found as by the AWS tools."""

    endpoint: PublicAddress = Field(
        "", pattern=r"^(|https?://.+)$", description="endpoint of the store; default: that of AWS"
    )
    region: str = Field("", description="region of the bucket; default: AWS_REGION")


class StreamAlertLimits(SettingsSection):
    """Limits of one stream that differ from the limits of all streams."""

    max_watermark_delay: DurationMs | None = Field(None, gt=0)
    max_watermark_ahead: DurationMs | None = Field(None, ge=0)
    max_lag_records: int | None = Field(None, ge=0)


class AlertSettings(SettingsSection):
    """When alerts are raised, and where they are sent."""

    webhook: SecretReference = Field(
        "", description="secret reference: URL that receives alerts as JSON; the log has them in any case"
    )
    max_watermark_delay: DurationMs = Field(
        DurationMs(900_000), gt=0, description="maximum age of a watermark while records arrive or wait"
    )
    max_watermark_ahead: DurationMs = Field(
        DurationMs(60_000), ge=0, description="how far a watermark may be ahead of the clock"
    )
    max_time_without_host: DurationMs = Field(
        DurationMs(60_000), gt=0, description="how long a stream that should run may have no host"
    )
    max_lag_records: int = Field(100_000, ge=0, description="maximum consumer lag of a stream, in records")
    of: dict[str, StreamAlertLimits] = Field({}, description="limits of single streams, by stream name")

    def max_watermark_ahead_of(self, stream: str) -> int:
        """Return how far the watermark of a stream may be ahead of the clock, in milliseconds."""
        limits = self.of.get(stream)
        own_limit = None if limits is None else limits.max_watermark_ahead
        return int(self.max_watermark_ahead if own_limit is None else own_limit)


class FeedSettings(SettingsSection):
    """The sample feed of sensor readings of a local stack."""

    enabled: bool = Field(True, description="whether the stack runs the feed")
    rate: float = Field(50.0, gt=0, description="readings per second")
    seed: int = Field(1, description="seed of the random numbers")


class LineageSettings(SettingsSection):
    """Where OpenLineage events are sent."""

    to: PublicAddress = Field(
        "", pattern=r"^(|file:.+|https?://.+)$", description="file:/path or http://host; empty sends none"
    )
    key: SecretReference = Field("", description="secret reference: API key of the receiver")
    namespace: str = Field("penstock", min_length=1, description="OpenLineage namespace of the jobs")


class TerraformSettings(SettingsSection):
    """Which Terraform provisions the environments."""

    engine: str = Field(
        "embedded", min_length=1, description="embedded, terraform, tofu, or the path of a binary"
    )


class Settings(BaseSettings):
    """All settings. Relative paths start from `root`."""

    model_config = SettingsConfigDict(
        env_prefix="PENSTOCK_", env_nested_delimiter="__", env_ignore_empty=True, extra="forbid", frozen=True
    )

    root: Path = Field(description="the checkout; penstock.toml is read from here")
    home: Path = Field(Path(".penstock"), description="folder of everything that the platform writes")
    file_access: FileAccess = Field(
        "owner", description="who may read what the platform writes: owner, group or everyone"
    )
    jars: Path = Field(
        Path(), description="folder of the jars of Spark and Kafka; default: in the home folder"
    )
    warehouse: str = Field("", description="location of the tables: a folder, or s3://bucket/prefix")
    control_url: str = Field("", description="URL of the control store; default: SQLite in the home folder")
    control_secret: SecretReference = Field(
        "", description="secret reference: password of the control store; default: as libpq finds it"
    )
    streams: Annotated[tuple[str, ...], NoDecode] = Field(
        ("sensor_minute", "archive-sensors"), description="streams of a fresh stack, separated by commas"
    )
    max_future_skew: Annotated[DurationMs | Unlimited, PlainValidator(_parse_future_skew)] = Field(
        DurationMs(600_000),
        description="how far event times may be ahead of the clock, unless pipeline or contract say; or unlimited",
    )
    kafka: KafkaSettings = KafkaSettings()
    spark: SparkSettings = SparkSettings()
    host: HostSettings = HostSettings()
    dagster: DagsterSettings = DagsterSettings()
    console: ConsoleSettings = ConsoleSettings()
    feed: FeedSettings = FeedSettings()
    lineage: LineageSettings = LineageSettings()
    terraform: TerraformSettings = TerraformSettings()
    alerts: AlertSettings = AlertSettings()
    maintenance: MaintenanceSettings = MaintenanceSettings()
    warehouse_store: ObjectStoreSettings = ObjectStoreSettings()

    @field_validator("streams", mode="before")
    @classmethod
    def _split_streams(cls, value: object) -> object:
        return split_names(value)

    @model_validator(mode="before")
    @classmethod
    def _resolve_paths(cls, values: dict[str, object]) -> dict[str, object]:
        """Make paths absolute, so that every process uses the same folders."""
        root = Path(str(values["root"])).expanduser().resolve()
        home = root / Path(str(values.get("home") or ".penstock")).expanduser()
        return {
            **values,
            "root": root,
            "home": home,
            "jars": root / Path(str(values.get("jars") or home / "jars")).expanduser(),
            "warehouse": _resolve_warehouse(root, str(values.get("warehouse") or home / "warehouse")),
            "control_url": values.get("control_url") or f"sqlite:///{home / 'control.db'}",
        }

    @model_validator(mode="after")
    def _check_host_launch(self) -> Self:
        if problem := find_launch_conflict(self):
            raise ValueError(problem)
        return self

    @model_validator(mode="after")
    def _check_ports_differ(self) -> Self:
        taken: dict[int, str] = {}
        for name, port in self.ports.items():
            if port in taken:
                raise ValueError(f"{name} and {taken[port]} are both {port}. Use a different port for each")
            taken[port] = name
        return self

    @property
    def warehouse_path(self) -> StoragePath:
        """Location of the tables."""
        store_settings = self.warehouse_store
        return parse_storage_path(
            self.warehouse, ObjectStoreConfig(store_settings.endpoint, store_settings.region)
        )

    @property
    def spark_jar_sets(self) -> tuple[str, ...]:
        """The jar sets that Spark needs; tables in an object store need one more."""
        return ("spark", "store") if isinstance(self.warehouse_path, ObjectStorePath) else ("spark",)

    @property
    def registry_location(self) -> str:
        """The schema registry: a URL or a folder."""
        return self.kafka.registry or str(self.home / "registry")

    @property
    def host_metrics_port(self) -> int:
        """Port of the host's metrics on this machine; 0 if it has none, or if it runs elsewhere."""
        return self.host.metrics_port if self.spark.deploy_mode == "client" else 0

    @property
    def console_url(self) -> str:
        """The address of the console for a browser on this machine."""
        return f"http://{LOOPBACK}:{self.console.port}/"

    @property
    def ports(self) -> dict[str, int]:
        """Every port of the local stack, by the setting's name."""
        return {
            "kafka.port": self.kafka.port,
            "kafka.controller_port": self.kafka.controller_port,
            **({"host.metrics_port": self.host_metrics_port} if self.host_metrics_port else {}),
            "console.port": self.console.port,
            "dagster.port": self.dagster.port,
            "dagster.code_port": self.dagster.code_port,
            **({"dagster.viewer_port": self.dagster.viewer_port} if self.dagster.viewer_port else {}),
        }


def _resolve_warehouse(root: Path, address: str) -> str:
    """Return a URL unchanged and a path as absolute; raise ValueError if tables cannot be stored there."""
    try:
        warehouse_path = parse_storage_path(address)
    except StorageAddressError as problem:
        raise ValueError(str(problem)) from None
    return str(
        warehouse_path if isinstance(warehouse_path, ObjectStorePath) else root / warehouse_path.expanduser()
    )
