"""A checkout of a test's own whose environment `local` is applied, and a platform that is told to use it."""

import json
import subprocess
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from confluent_kafka.admin import AdminClient
from tests.infra.environments.environment_copies import copy_environments
from tests.infra.environments.secret_search import find_files_with_values
from tests.platform.whole.stack import ScratchStack

from penstock.infra.environments import EnvironmentCatalog, EnvironmentOutputs
from penstock.infra.kafka_access import kafka_client_config

NAME = "local"


@dataclass
class AppliedStack(ScratchStack):
    """The platform with its topics, its Spark and its tables in the environment `local`.

    Its control store is there, too, unless a variable says where. `home` is `.penstock` below the checkout;
    everything is done by the words that a person would use.
    """

    tfvars: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        copy_environments(self.root)
        (self.root / "infra" / "environments" / NAME / "terraform.tfvars").write_text(self.tfvars, "utf-8")
        self.environment["PENSTOCK_ROOT"] = str(self.root)

    @property
    def root(self) -> Path:
        """The checkout."""
        return self.home.parent

    @property
    def run_folder(self) -> Path:
        """Where the environment's programs keep what they have; it goes with them."""
        return self.home / "environments" / NAME / "run"

    @cached_property
    def outputs(self) -> EnvironmentOutputs:
        """What the environment tells of itself: Terraform is asked once, as a process, for no apply changes it."""
        return EnvironmentCatalog(self.root, self.home).open(NAME).read_outputs()

    @property
    def client(self) -> dict[str, str]:
        """A client that logs in as the stream host does."""
        return kafka_client_config(self.outputs.kafka.kafka_access, "host")

    @property
    def warehouse(self) -> Path:
        """Where the environment has the tables."""
        return Path(self.outputs.warehouse.root)

    @property
    def control_url(self) -> str:
        """Where the environment has the control store."""
        return self.variables.get("PENSTOCK_CONTROL_URL") or self.outputs.control_store.url

    def leader(self, topic: str, partition: int = 0) -> int:
        """The broker that leads a partition."""
        topics = AdminClient({**self.client, "log_level": "0"}).list_topics(topic, timeout=30).topics
        return int(topics[topic].partitions[partition].leader)

    def environment_pids(self) -> dict[str, int]:
        """The process of each program that the environment started."""
        records = [*self.run_folder.glob("kafka/broker-*.json"), *self.run_folder.glob("spark/spark-*.json")]
        return {path.stem: json.loads(path.read_text("utf-8"))["pid"] for path in records}

    def secrets(self) -> dict[Path, bytes]:
        """Every secret of the environment, by the file that holds it."""
        outputs = self.outputs
        places = [*outputs.kafka.security.secrets.values(), outputs.spark.secret]
        return {Path(place): Path(place).read_bytes() for place in places}

    def files_with_a_secret(self) -> list[Path]:
        """Every file of the checkout, logs and Dagster's storage among them, in which a secret stands."""
        files = [path for path in self.root.rglob("*") if path.is_file() and not path.is_symlink()]
        return find_files_with_values(files, set(self.secrets().values()))

    def command_lines_with_a_secret(self) -> list[str]:
        """The command line of every process of this machine in which a secret stands."""
        shown = subprocess.run(["ps", "-eww", "-o", "args"], capture_output=True, check=True).stdout
        secrets = self.secrets().values()
        return [line.decode() for line in shown.splitlines() for value in secrets if value in line]
