"""The separate environment of Apache Beam, whose packages conflict with ours; created once from a hashed lock."""

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

LOCK_FILE = Path(__file__).with_name("beam.lock")
INSTALL_TIMEOUT_S = 300


def environment_python(root: Path) -> Path:
    """Return the path of the environment's Python, in the checkout's cache, named after the hash of the lock."""
    return root / ".cache" / f"beam-{lock_hash(LOCK_FILE)}" / "bin" / "python"


def ensure_environment(root: Path) -> tuple[Path | None, str]:
    """Return the Python of the environment, created if it is missing; on failure, None and the reason."""
    python = environment_python(root)
    if python.exists():
        return python, ""
    uv = root / ".cache" / "tools" / "bin" / "uv"
    if not uv.exists():
        return None, "uv is missing in .cache/tools; run `make dev-environment`"
    return create_environment(uv, python)


def create_environment(uv: Path, python: Path) -> tuple[Path | None, str]:
    """Create the environment atomically."""
    environment_folder = python.parent.parent
    temp_folder = environment_folder.with_name(f"{environment_folder.name}.{os.getpid()}")
    process_environment = {**os.environ, "UV_SYSTEM_CERTS": "1"}
    create_command = [str(uv), "venv", "-q", "-p", "3.11", "--relocatable", str(temp_folder)]
    install_command = [
        str(uv),
        "pip",
        "install",
        "-q",
        "-p",
        str(temp_folder),
        "--require-hashes",
        "-r",
        str(LOCK_FILE),
    ]
    try:
        for command in (create_command, install_command):
            subprocess.run(
                command,
                env=process_environment,
                check=True,
                capture_output=True,
                text=True,
                timeout=INSTALL_TIMEOUT_S,
            )
        temp_folder.rename(environment_folder)
    except subprocess.CalledProcessError as error:
        last_line = (error.stderr.strip() or f"uv ended with {error.returncode}").splitlines()[-1]
        return None, f"the installation of Apache Beam failed: {last_line}"
    except subprocess.TimeoutExpired:
        return None, f"the installation of Apache Beam timed out after {INSTALL_TIMEOUT_S} s"
    except FileExistsError:
        pass  # another process has created it
    except OSError:
        if not python.exists():
            raise
    finally:
        shutil.rmtree(temp_folder, ignore_errors=True)
    return python, ""


def lock_hash(lock: Path) -> str:
    """Return a short hash of the lock file."""
    return hashlib.sha256(lock.read_bytes()).hexdigest()[:12]
