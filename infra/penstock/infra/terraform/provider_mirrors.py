"""Where providers come from when they are not to be downloaded.

A filesystem mirror is a folder HOST/NAMESPACE/NAME/VERSION/SYSTEM/terraform-provider-*. Terraform knows
some by itself; one in the system's folder for optional software, or one that is named in a setting, has
to be written into a CLI configuration, which is made here and never taken from the user's home.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Iterable, Sequence
from pathlib import Path

OPTIONAL_SOFTWARE_DIRECTORY = Path("/opt")
STANDARD_MIRRORS = (
    Path("/usr/local/share/terraform/plugins"),
    Path("/usr/share/terraform/plugins"),
    Path("~/.local/share/terraform/plugins"),
    Path("~/.terraform.d/plugins"),
)
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def platform_name() -> str:
    """Return this system's name as in mirrors, such as `linux_amd64`."""
    machine = platform.machine().lower()
    return f"{platform.system().lower()}_{_ARCHITECTURES.get(machine, machine)}"


def has_providers(folder: Path) -> bool:
    """Return whether the folder is a mirror with a provider for this system."""
    return any(folder.glob(f"*/*/*/*/{platform_name()}/terraform-provider-*"))


def has_provider(folder: Path, provider: str, version: str) -> bool:
    """Return whether the mirror has this version of a provider such as `hashicorp/aws`."""
    return any(folder.glob(f"*/{provider}/{version}/{platform_name()}/terraform-provider-*"))


def find_mirrors(
    configured: Iterable[Path] = (), optional_directory: Path = OPTIONAL_SOFTWARE_DIRECTORY
) -> tuple[Path, ...]:
    """Return all mirrors of this machine: those of settings, then the usual folders."""
    candidates = [*configured, *(path.expanduser() for path in STANDARD_MIRRORS)]
    if optional_directory.is_dir():
        candidates += sorted(folder for folder in optional_directory.iterdir() if folder.is_dir())
    return tuple(
        dict.fromkeys(
            candidate for candidate in candidates if candidate.is_dir() and has_providers(candidate)
        )
    )


def list_providers(folder: Path) -> tuple[str, ...]:
    """Return the addresses HOST/NAMESPACE/NAME of the mirror's providers for this system."""
    executables = folder.glob(f"*/*/*/*/{platform_name()}/terraform-provider-*")
    return tuple(sorted({"/".join(path.relative_to(folder).parts[:3]) for path in executables}))


def render_cli_configuration(mirrors: Sequence[Path]) -> str:
    """The text of a CLI configuration: what mirrors have comes from them, the rest from its own host.

    Terraform asks every place that may have a provider and fails when one of them is out of reach, so
    what is in a mirror is looked for in mirrors only.
    """
    mirrored = sorted({address for mirror in mirrors for address in list_providers(mirror)})
    blocks = [f"  filesystem_mirror {{\n    path = {json.dumps(str(mirror))}\n  }}" for mirror in mirrors]
    direct = f"  direct {{\n    exclude = {json.dumps(mirrored)}\n  }}"
    return "\n".join(["disable_checkpoint = true", "provider_installation {", *blocks, direct, "}", ""])
