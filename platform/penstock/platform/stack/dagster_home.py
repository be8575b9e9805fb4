"""Dagster's home folder: the instance and the workspace, written from the settings."""

from pathlib import Path
from typing import Any

import yaml

from penstock.core.files import write_atomically
from penstock.platform.settings import Settings
from penstock.platform.settings.model import LOOPBACK
from penstock.platform.settings.naming import variable_name

CODE_LOCATION = "penstock"
"""The name of the code location. Runs find their code by it, so server and workspace use the same name."""

CODE_LOCATION_MODULE = "penstock.platform.definitions.location"


def write_dagster_home(settings: Settings) -> Path:
    """Write dagster.yaml and workspace.yaml if they differ from the settings, and return the folder."""
    home = dagster_home(settings)
    home.mkdir(parents=True, exist_ok=True)
    _write_yaml(home / "dagster.yaml", dagster_config(settings))
    _write_yaml(workspace_file(settings), workspace_config(settings))
    return home


def dagster_home(settings: Settings) -> Path:
    """Return the folder for DAGSTER_HOME."""
    return settings.home / "dagster"


def workspace_file(settings: Settings) -> Path:
    """Return the file that tells Dagster the address of the code server."""
    return dagster_home(settings) / "workspace.yaml"


def dagster_config(settings: Settings) -> dict[str, Any]:
    """Build the content of dagster.yaml."""
    keep_days = settings.dagster.tick_retention_days
    config: dict[str, Any] = {
        "telemetry": {"enabled": False},
        "nux": {"enabled": False},
        "concurrency": {
            # Most runs only request a state and wait, so many may run at the same time.
            "runs": {"max_concurrent_runs": 10},
            # Runs that start Spark share a pool, the only one that exists.
            "pools": {"default_limit": settings.dagster.spark_runs, "granularity": "run"},
        },
        "run_monitoring": {"enabled": True},
        "freshness": {"enabled": True},
        "retention": {
            "schedule": {"purge_after_days": keep_days},
            # A sensor tick without a result is recorded every few seconds: keep one day of them.
            "sensor": {"purge_after_days": {"skipped": 1, "failure": keep_days, "success": keep_days}},
        },
    }
    if settings.dagster.storage_url:
        # A reference to a variable keeps the password out of the file.
        config["storage"] = {"postgres": {"postgres_url": {"env": variable_name("dagster.storage_url")}}}
    return config


def workspace_config(settings: Settings) -> dict[str, Any]:
    """Build the content of workspace.yaml: the address of the code server."""
    grpc_server = {"host": LOOPBACK, "port": settings.dagster.code_port, "location_name": CODE_LOCATION}
    return {"load_from": [{"grpc_server": grpc_server}]}


def _write_yaml(path: Path, content: dict[str, Any]) -> None:
    text = yaml.safe_dump(content, sort_keys=False)
    if not path.is_file() or path.read_text("utf-8") != text:
        write_atomically(path, text)
