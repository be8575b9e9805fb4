"""An environment of its own for Apache Beam, whose packages do not go with ours: made once, from a hashed lock."""

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

LOCK_FILE = Path(__file__).with_name("beam.lock")
INSTALL_TIMEOUT_S = 300


def environment_python(root: Path) -> Path:
    """Return where the Python of that environment is, or would be: in a checkout's cache, under the lock's name."""
    return root / ".cache" / f"beam-{lock_hash(LOCK_FILE)}" / "bin" / "python"


def ensure_environment(root: Path) -> tuple[Path | None, str]:
    """Return the Python of an environment that has Beam, made where it is missing, or None and why not."""
    python = environment_python(root)
    if python.exists():
        return python, ""
    uv = root / ".cache" / "tools" / "bin" / "uv"
    if not uv.exists():
        return None, "uv is not in .cache/tools: make dev-environment"
    return create_environment(uv, python)


def create_environment(uv: Path, python: Path) -> tuple[Path | None, str]:
    """Make the environment whole, or not at all."""
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
        return None, f"Apache Beam is not to be had: {last_line}"
    except subprocess.TimeoutExpired:
        return None, f"Apache Beam was not installed within {INSTALL_TIMEOUT_S} s"
    except FileExistsError:
        pass  # another made it meanwhile
    except OSError:
        if not python.exists():
            raise
    finally:
        shutil.rmtree(temp_folder, ignore_errors=True)
    return python, ""


def lock_hash(lock: Path) -> str:
    """Return what tells one lock from another."""
    return hashlib.sha256(lock.read_bytes()).hexdigest()[:12]
