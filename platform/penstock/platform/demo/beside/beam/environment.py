"""An environment of its own for Apache Beam, whose packages do not go with ours: made once, from a hashed lock."""

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

LOCK = Path(__file__).with_name("beam.lock")
PATIENCE_S = 300


def python_of(root: Path) -> Path:
    """Return where the Python of that environment is, or would be: in a checkout's cache, under the lock's name."""
    return root / ".cache" / f"beam-{hash_of(LOCK)}" / "bin" / "python"


def python_with_beam(root: Path) -> tuple[Path | None, str]:
    """Return the Python of an environment that has Beam, made where it is missing, or None and why not."""
    python = python_of(root)
    if python.exists():
        return python, ""
    uv = root / ".cache" / "tools" / "bin" / "uv"
    if not uv.exists():
        return None, "uv is not in .cache/tools: make dev-environment"
    return made(uv, python)


def made(uv: Path, python: Path) -> tuple[Path | None, str]:
    """Make the environment whole, or not at all."""
    place = python.parent.parent
    fresh = place.with_name(f"{place.name}.{os.getpid()}")
    environment = {**os.environ, "UV_SYSTEM_CERTS": "1"}
    make = [str(uv), "venv", "-q", "-p", "3.11", "--relocatable", str(fresh)]
    fill = [str(uv), "pip", "install", "-q", "-p", str(fresh), "--require-hashes", "-r", str(LOCK)]
    try:
        for command in (make, fill):
            subprocess.run(
                command, env=environment, check=True, capture_output=True, text=True, timeout=PATIENCE_S
            )
        fresh.rename(place)
    except subprocess.CalledProcessError as problem:
        said = (problem.stderr.strip() or f"uv ended with {problem.returncode}").splitlines()[-1]
        return None, f"Apache Beam is not to be had: {said}"
    except subprocess.TimeoutExpired:
        return None, f"Apache Beam was not installed within {PATIENCE_S} s"
    except FileExistsError:
        pass  # another made it meanwhile
    except OSError:
        if not python.exists():
            raise
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return python, ""


def hash_of(lock: Path) -> str:
    """Return what tells one lock from another."""
    return hashlib.sha256(lock.read_bytes()).hexdigest()[:12]
