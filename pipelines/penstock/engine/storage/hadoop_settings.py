"""What Spark is told, so that it reads tables where they are."""

from penstock.engine.storage.object_store import ObjectStorePath
from penstock.engine.storage.storage_path import StoragePath

S3A_FILE_SYSTEM_CLASS = "org.apache.hadoop.fs.s3a.S3AFileSystem"
AWS_CREDENTIALS_PROVIDER_CLASS = "software.amazon.awssdk.auth.credentials.DefaultCredentialsProvider"
"""Hadoop's own way knows no profiles, and everything else here does."""


def s3a_read_settings(path: StoragePath) -> dict[str, str]:
    """Spark's settings for reading below a place; nothing for a folder. It wants the jars of the set `store`."""
    if not isinstance(path, ObjectStorePath):
        return {}
    hadoop_options = {
        "fs.s3.impl": S3A_FILE_SYSTEM_CLASS,
        "fs.s3a.impl": S3A_FILE_SYSTEM_CLASS,
        "fs.s3a.aws.credentials.provider": AWS_CREDENTIALS_PROVIDER_CLASS,
    }
    if path.store_config.region:
        hadoop_options["fs.s3a.endpoint.region"] = path.store_config.region
    if path.store_config.endpoint:
        # Stores of others know their buckets by paths: a name of its own would have to be resolved.
        hadoop_options |= {"fs.s3a.endpoint": path.store_config.endpoint, "fs.s3a.path.style.access": "true"}
    return {f"spark.hadoop.{name}": value for name, value in hadoop_options.items()}
