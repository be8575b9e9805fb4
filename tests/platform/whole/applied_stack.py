"""A platform on an applied environment `local`, in its own checkout."""

import json
import subprocess
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from confluent_kafka.admin import AdminClient
from tests.infra.environments.environment_copies import copy_environments
from tests.infra.environments.secret_search import find_files_with_values
from tests.patience import PATIENCE_S
from tests.platform.whole.scratch_stack import ScratchStack

from penstock.infra.environments import EnvironmentCatalog, EnvironmentOutputs
from penstock.infra.kafka_access import kafka_client_config

ENVIRONMENT = "local"


@dataclass
class AppliedStack(ScratchStack):
    """A platform whose broker, Spark and tables are in the environment `local`.

    Its control store is there, too, unless a variable sets another one. `home` is `.penstock` below the checkout.
    """

    tfvars: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        copy_environments(self.root)
        (self.root / "infra" / "environments" / ENVIRONMENT / "terraform.tfvars").write_text(
            self.tfvars, "utf-8"
        )
        self.environment["PENSTOCK_ROOT"] = str(self.root)

    @property
    def root(self) -> Path:
        """The checkout."""
        return self.home.parent

    @property
    def run_folder(self) -> Path:
        """The folder of the environment's programs."""
        return self.home / "environments" / ENVIRONMENT / "run"

    @cached_property
    def outputs(self) -> EnvironmentOutputs:
        """The outputs of the environment, read once."""
        return EnvironmentCatalog(self.root, self.home).open(ENVIRONMENT).read_outputs()

    @property
    def client(self) -> dict[str, str]:
        """The client configuration of the stream host."""
        return kafka_client_config(self.outputs.kafka.kafka_access, "host")

    @property
    def warehouse(self) -> Path:
        """The warehouse of the environment."""
        return Path(self.outputs.warehouse.root)

    @property
    def control_url(self) -> str:
        """The URL of the control store."""
        return self.variables.get("PENSTOCK_CONTROL_URL") or self.outputs.control_store.url

    def leader(self, topic: str, partition: int = 0) -> int:
        """Return the broker that leads a partition."""
        topics = AdminClient({**self.client, "log_level": "0"}).list_topics(topic, timeout=PATIENCE_S).topics
        return int(topics[topic].partitions[partition].leader)

    def environment_pids(self) -> dict[str, int]:
        """Return the process id of each program of the environment."""
        records = [*self.run_folder.glob("kafka/broker-*.json"), *self.run_folder.glob("spark/spark-*.json")]
        return {path.stem: json.loads(path.read_text("utf-8"))["pid"] for path in records}

    def secrets(self) -> dict[Path, bytes]:
        """Return every secret of the environment by its file."""
        outputs = self.outputs
        paths = [*outputs.kafka.security.secrets.values(), outputs.spark.secret]
        return {Path(path): Path(path).read_bytes() for path in paths}

    def files_with_a_secret(self) -> list[Path]:
        """List the files of the checkout that contain a secret."""
        files = [path for path in self.root.rglob("*") if path.is_file() and not path.is_symlink()]
        return find_files_with_values(files, set(self.secrets().values()))

    def command_lines_with_a_secret(self) -> list[str]:
        """List the command lines of this machine that contain a secret."""
        output = subprocess.run(["ps", "-eww", "-o", "args"], capture_output=True, check=True).stdout
        secrets = self.secrets().values()
        return [line.decode() for line in output.splitlines() for value in secrets if value in line]
