"""Making the lock of the jars again: `python -m penstock.infra.jar_lock`, or `make lock`.

Spark's jars are named one by one and taken alone, because the wheel already holds what they need. The
broker's are what Kafka's own declaration leads to.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from penstock.core.errors import PenstockError
from penstock.core.files import write_atomically
from penstock.infra.errors import JarLockError
from penstock.infra.ivy import JarRequest, MavenCoordinates, fetch_jars, ignore_progress
from penstock.infra.jars import LOCK_FILE, LockedJar, hash_file

DELTA_VERSION = "4.4.0"
KAFKA_VERSION = "4.3.1"

SPARK_JARS = (
    MavenCoordinates("org.apache.spark", "spark-sql-kafka-0-10_2.13", "4.2.0"),
    # 4.2.0 of the next two is not published; these work with Spark 4.2.0.
    MavenCoordinates("org.apache.spark", "spark-token-provider-kafka-0-10_2.13", "4.0.0"),
    MavenCoordinates("org.apache.spark", "spark-avro_2.13", "4.1.1"),
    MavenCoordinates("org.apache.kafka", "kafka-clients", "3.9.2"),
    MavenCoordinates("org.apache.commons", "commons-pool2", "2.13.1"),
    MavenCoordinates("io.delta", "delta-spark_4.2_2.13", DELTA_VERSION),
    MavenCoordinates("io.delta", "delta-storage", DELTA_VERSION),
    MavenCoordinates("io.delta", "delta-kernel-api", DELTA_VERSION),
    MavenCoordinates("io.delta", "delta-kernel-defaults", DELTA_VERSION),
    MavenCoordinates("io.delta", "delta-kernel-unitycatalog", DELTA_VERSION),
    MavenCoordinates("com.globalmentor", "hadoop-bare-naked-local-fs", "0.1.0"),
)

KAFKA_ROOT_JARS = (
    MavenCoordinates("org.apache.kafka", "kafka_2.13", KAFKA_VERSION),
    # Kafka leaves the choice of what writes its log to whoever runs it.
    MavenCoordinates("org.apache.logging.log4j", "log4j-slf4j-impl", "2.25.4"),
)

# Taken alone too: for reading, writing and describing topics and groups it needs nothing beyond the broker's jars.
# What it declares brings Kafka Connect and a web server, fifty jars more.
TOOLS_JARS = (MavenCoordinates("org.apache.kafka", "kafka-tools", KAFKA_VERSION),)

HADOOP_VERSION, AWS_SDK_VERSION = "3.5.0", "2.35.4"
"""The Hadoop of Spark's wheel, and the SDK that it was made with."""

# The parts of the SDK that Hadoop uses, for what it asks for is all of it in one jar, hundreds of MB. Spark's
# wheel has what they stand on.
AWS_SDK_MODULES = (
    *("annotations", "apache-client", "arns", "auth", "aws-core", "aws-query-protocol", "aws-xml-protocol"),
    *("checksums", "checksums-spi", "crt-core", "endpoints-spi", "http-auth", "http-auth-aws"),
    *(
        "http-auth-aws-eventstream",
        "http-auth-spi",
        "http-client-spi",
        "identity-spi",
        "json-utils",
        "metrics-spi",
    ),
    *("netty-nio-client", "profiles", "protocol-core", "regions", "retries", "retries-spi", "s3"),
    *("s3-transfer-manager", "sdk-core", "sts", "third-party-jackson-core", "utils", "utils-lite"),
)

# What reads tables in an object store.
OBJECT_STORE_JARS = (
    MavenCoordinates("org.apache.hadoop", "hadoop-aws", HADOOP_VERSION),
    MavenCoordinates("software.amazon.s3.analyticsaccelerator", "analyticsaccelerator-s3", "1.3.0"),
    MavenCoordinates("software.amazon.eventstream", "eventstream", "1.0.1"),
    MavenCoordinates("org.reactivestreams", "reactive-streams", "1.0.4"),
    *(MavenCoordinates("software.amazon.awssdk", part, AWS_SDK_VERSION) for part in AWS_SDK_MODULES),
)


def write_jar_lock(lock_file: Path = LOCK_FILE, repository: str | None = None) -> list[LockedJar]:
    """Fetch every jar anew, and write its coordinates and SHA-256 to the lock, whole or not at all."""
    jars = _fetch_and_hash(JarRequest(SPARK_JARS), "spark", repository)
    jars += _fetch_and_hash(JarRequest(KAFKA_ROOT_JARS, transitive=True), "kafka", repository)
    jars += _fetch_and_hash(JarRequest(TOOLS_JARS), "tools", repository)
    jars += _fetch_and_hash(JarRequest(OBJECT_STORE_JARS), "store", repository)
    _refuse_duplicate_file_names(jars)
    write_atomically(lock_file, render_jar_lock(jars))
    return jars


def render_jar_lock(jars: Iterable[LockedJar]) -> str:
    """Return the text of a lock that holds these jars."""
    lines = sorted(f"{jar.sha256}  {jar.coordinates}  {jar.jar_set}" for jar in jars)
    sorted_lines = sorted(lines, key=lambda line: line.split()[:0:-1])
    return (
        "# Made by `make lock`: SHA-256, Maven coordinates, who needs the jar.\n"
        + "\n".join(sorted_lines)
        + "\n"
    )


def _fetch_and_hash(request: JarRequest, jar_set: str, repository: str | None) -> list[LockedJar]:
    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(temporary)
        failure = fetch_jars(request, directory, ignore_progress, repository)
        if failure:
            raise JarLockError(f"The lock of the {jar_set} jars was not made: {failure}.")
        coordinates = _read_ivy_cache(directory) if request.transitive else list(request.jars)
        return [LockedJar(hash_file(directory / name.file_name), name, jar_set) for name in coordinates]


def _read_ivy_cache(directory: Path) -> list[MavenCoordinates]:
    """Read what was fetched out of Ivy's cache: organisation/module/ivy-revision.xml, and the jars beside."""
    module_files = (path for path in directory.glob("*/*/ivy-*.xml"))
    coordinates = [
        MavenCoordinates(path.parts[-3], path.parts[-2], path.stem.removeprefix("ivy-"))
        for path in module_files
    ]
    return [name for name in coordinates if (directory / name.file_name).exists()]


def _refuse_duplicate_file_names(jars: Sequence[LockedJar]) -> None:
    names = [jar.file_name for jar in jars]
    duplicates = sorted({name for name in names if names.count(name) > 1})
    if duplicates:
        raise JarLockError(f"Two jars of the lock would have one file name: {', '.join(duplicates)}.")


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the lock of the jars again, from the command line."""
    parser = argparse.ArgumentParser(prog="python -m penstock.infra.jar_lock", description=main.__doc__)
    parser.add_argument("--repository", help="the address of a Maven mirror; Ivy's default without it")
    try:
        jars = write_jar_lock(repository=parser.parse_args(arguments).repository)
    except PenstockError as error:
        print(error, file=sys.stderr)  # noqa: T201  the answer of a command goes to the terminal
        return 1
    print(f"{len(jars)} jars locked in {LOCK_FILE.name}")  # noqa: T201  as above
    return 0


if __name__ == "__main__":
    sys.exit(main())
