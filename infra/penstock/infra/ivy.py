"""Fetching jars with the Ivy that comes inside the pyspark wheel.

Ivy's own default repository is used, so that no host is named anywhere; a mirror may be given.
"""

import importlib.util
import re
import signal
import subprocess
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from penstock.infra.errors import JarDownloadError
from penstock.infra.java import find_java
from penstock.infra.parent_bound import parent_bound_command

JarProgress = Callable[[int, int, str], None]
"""Told (jars done, jars in all, the name of the one that has just come)."""


def ignore_progress(done: int, total: int, name: str) -> None:
    """Show no progress."""


FETCH_TIMEOUT_S = 900.0

_DOWNLOADED_LINE = re.compile(r"\[SUCCESSFUL \] \S+!(\S+)\.jar")
_FAILURE_HINTS = (
    ("No space left on device", "the disk is full: free some space and try again"),
    ("UnknownHostException", "the repository's name cannot be resolved: is there a network?"),
    ("Connection refused", "the repository refuses connections: is there a network, or a proxy to set?"),
    (
        "PKIX path",
        "the repository's certificate is not trusted by this Java: add your root to its trust store",
    ),
    ("timed out", "the repository did not answer in time: try again"),
    ("Server access", "the repository could not be reached: is there a network, or a proxy to set?"),
    ("UNRESOLVED DEPENDENCIES", "the repository does not hold them: is the lock right?"),
)


@dataclass(frozen=True)
class MavenCoordinates:
    """The Maven name of one jar."""

    group: str
    artifact: str
    version: str

    def __str__(self) -> str:
        return f"{self.group}:{self.artifact}:{self.version}"

    @property
    def file_name(self) -> str:
        """The name of the jar's file, as its project publishes it."""
        return f"{self.artifact}-{self.version}.jar"


@dataclass(frozen=True)
class JarRequest:
    """What to fetch: these jars, alone or with everything that they need at run time."""

    jars: tuple[MavenCoordinates, ...]
    transitive: bool = False


def find_ivy_jar() -> Path:
    """Return the Ivy of the installed pyspark wheel; pyspark itself is not imported."""
    spec = importlib.util.find_spec("pyspark")
    locations = list(spec.submodule_search_locations or []) if spec else []
    for location in locations:
        for jar in sorted(Path(location, "jars").glob("ivy-*.jar")):
            return jar
    raise JarDownloadError(
        "The jars are fetched with the Ivy inside the pyspark wheel, and no pyspark with one is installed. "
        "Run `make up`, or install requirements.lock, first."
    )


def fetch_jars(
    request: JarRequest,
    directory: Path,
    progress: JarProgress,
    repository: str | None = None,
    timeout_s: float = FETCH_TIMEOUT_S,
) -> str | None:
    """Fetch jars into an empty folder; return None, or the reason why some did not come.

    What came is whole as far as the repository told its length; it is for the caller to check it.
    """
    directory = directory.absolute()  # Ivy takes no other
    settings_file, module_file = directory / "settings.xml", directory / "ivy.xml"
    settings_file.write_text(_render_settings_xml(repository, poms=request.transitive), "utf-8")
    module_file.write_text(_render_module_xml(request), "utf-8")
    command = [
        str(find_java().command), "-Xmx256m", f"-Divy.default.ivy.user.dir={directory}",
        "-jar", str(find_ivy_jar()),
        "-settings", str(settings_file), "-ivy", str(module_file), "-cache", str(directory),
        "-types", "jar", "bundle",
    ]  # fmt: skip
    return _run_ivy(parent_bound_command(command), len(request.jars), progress, timeout_s)


def _run_ivy(command: Sequence[str], total: int, progress: JarProgress, timeout_s: float) -> str | None:
    output_lines: list[str] = []
    fetched = 0
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        watchdog = threading.Timer(timeout_s, process.kill)
        watchdog.start()
        try:
            for line in process.stdout or ():
                output_lines.append(line)
                downloaded = _DOWNLOADED_LINE.search(line)
                if downloaded:
                    fetched += 1
                    progress(fetched, max(total, fetched), downloaded[1])
            exit_code = process.wait()
        except BaseException:
            process.kill()
            raise
        finally:
            watchdog.cancel()
    if exit_code == -signal.SIGKILL:
        return f"it took longer than {timeout_s:.0f} s and was stopped: try again"
    return None if exit_code == 0 else _failure_reason(output_lines)


def _failure_reason(output_lines: Iterable[str]) -> str:
    text = "".join(output_lines)
    for pattern, hint in _FAILURE_HINTS:
        if pattern in text:
            return hint
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    message_lines = [line for line in lines if not line.startswith("at ")]
    return f"Ivy said: {message_lines[-1] if message_lines else 'nothing'}"


def _render_settings_xml(repository: str | None, *, poms: bool) -> str:
    root_attribute = f" root={_quote_attribute(repository)}" if repository else ""
    use_poms = str(poms).lower()
    return f"""<ivysettings>
  <property name="ivy.checksums" value=""/>
  <settings defaultResolver="maven"/>
  <caches artifactPattern="[artifact]-[revision].[ext]"/>
  <resolvers>
    <ibiblio name="maven" m2compatible="true" usepoms="{use_poms}" useMavenMetadata="false"{root_attribute}/>
  </resolvers>
</ivysettings>
"""


def _render_module_xml(request: JarRequest) -> str:
    dependencies = "\n".join(_render_dependency(jar, transitive=request.transitive) for jar in request.jars)
    return f"""<ivy-module version="2.0">
  <info organisation="penstock" module="jars" revision="1"/>
  <configurations><conf name="default"/></configurations>
  <dependencies>
{dependencies}
  </dependencies>
</ivy-module>
"""


def _render_dependency(jar: MavenCoordinates, *, transitive: bool) -> str:
    group, artifact, version = map(_quote_attribute, (jar.group, jar.artifact, jar.version))
    attributes = f"org={group} name={artifact} rev={version}"
    return f'    <dependency {attributes} conf="default->default" transitive="{str(transitive).lower()}"/>'


def _quote_attribute(text: str) -> str:
    return f'"{escape(text)}"'
