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

from penstock.infra.dying_with import dying_with_parent
from penstock.infra.errors import JarDownloadError
from penstock.infra.java import find_java

Progress = Callable[[int, int, str], None]
"""Told (jars done, jars in all, the name of the one that has just come)."""


def silent(done: int, total: int, name: str) -> None:
    """Show no progress."""


FETCH_SECONDS = 900.0

_ARRIVED = re.compile(r"\[SUCCESSFUL \] \S+!(\S+)\.jar")
_REASONS = (
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
class Coordinates:
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
class Wanted:
    """What to fetch: these jars, alone or with everything that they need at run time."""

    jars: tuple[Coordinates, ...]
    transitive: bool = False


def ivy_jar() -> Path:
    """Return the Ivy of the installed pyspark wheel; pyspark itself is not imported."""
    spec = importlib.util.find_spec("pyspark")
    places = list(spec.submodule_search_locations or []) if spec else []
    for place in places:
        for jar in sorted(Path(place, "jars").glob("ivy-*.jar")):
            return jar
    raise JarDownloadError(
        "The jars are fetched with the Ivy inside the pyspark wheel, and no pyspark with one is installed. "
        "Run `make up`, or install requirements.lock, first."
    )


def fetch(
    wanted: Wanted,
    directory: Path,
    progress: Progress,
    repository: str | None = None,
    seconds: float = FETCH_SECONDS,
) -> str | None:
    """Fetch jars into an empty folder; return None, or the reason why some did not come.

    What came is whole as far as the repository told its length; it is for the caller to check it.
    """
    directory = directory.absolute()  # Ivy takes no other
    settings, module = directory / "settings.xml", directory / "ivy.xml"
    settings.write_text(_settings(repository, poms=wanted.transitive), "utf-8")
    module.write_text(_module(wanted), "utf-8")
    command = [
        str(find_java().command), "-Xmx256m", f"-Divy.default.ivy.user.dir={directory}",
        "-jar", str(ivy_jar()),
        "-settings", str(settings), "-ivy", str(module), "-cache", str(directory), "-types", "jar", "bundle",
    ]  # fmt: skip
    return _run(dying_with_parent(command), len(wanted.jars), progress, seconds)


def _run(command: Sequence[str], total: int, progress: Progress, seconds: float) -> str | None:
    said: list[str] = []
    done = 0
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        watchdog = threading.Timer(seconds, process.kill)
        watchdog.start()
        try:
            for line in process.stdout or ():
                said.append(line)
                arrived = _ARRIVED.search(line)
                if arrived:
                    done += 1
                    progress(done, max(total, done), arrived[1])
            status = process.wait()
        except BaseException:
            process.kill()
            raise
        finally:
            watchdog.cancel()
    if status == -signal.SIGKILL:
        return f"it took longer than {seconds:.0f} s and was stopped: try again"
    return None if status == 0 else _reason(said)


def _reason(said: Iterable[str]) -> str:
    text = "".join(said)
    for sign, meaning in _REASONS:
        if sign in text:
            return meaning
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    told = [line for line in lines if not line.startswith("at ")]
    return f"Ivy said: {told[-1] if told else 'nothing'}"


def _settings(repository: str | None, *, poms: bool) -> str:
    root = f" root={_quoted(repository)}" if repository else ""
    return f"""<ivysettings>
  <property name="ivy.checksums" value=""/>
  <settings defaultResolver="maven"/>
  <caches artifactPattern="[artifact]-[revision].[ext]"/>
  <resolvers>
    <ibiblio name="maven" m2compatible="true" usepoms="{str(poms).lower()}" useMavenMetadata="false"{root}/>
  </resolvers>
</ivysettings>
"""


def _module(wanted: Wanted) -> str:
    lines = "\n".join(_dependency(jar, transitive=wanted.transitive) for jar in wanted.jars)
    return f"""<ivy-module version="2.0">
  <info organisation="penstock" module="jars" revision="1"/>
  <configurations><conf name="default"/></configurations>
  <dependencies>
{lines}
  </dependencies>
</ivy-module>
"""


def _dependency(jar: Coordinates, *, transitive: bool) -> str:
    names = f"org={_quoted(jar.group)} name={_quoted(jar.artifact)} rev={_quoted(jar.version)}"
    return f'    <dependency {names} conf="default->default" transitive="{str(transitive).lower()}"/>'


def _quoted(text: str) -> str:
    return f'"{escape(text)}"'
