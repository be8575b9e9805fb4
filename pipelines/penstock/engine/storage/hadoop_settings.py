"""Builds the Spark settings for reading tables in an object store."""

from penstock.engine.storage.object_store import ObjectStorePath
from penstock.engine.storage.storage_path import StoragePath

S3A_FILE_SYSTEM_CLASS = "org.apache.hadoop.fs.s3a.S3AFileSystem"
AWS_CREDENTIALS_PROVIDER_CLASS = "software.amazon.awssdk.auth.credentials.DefaultCredentialsProvider"
"""Hadoop's default provider does not read AWS profiles; everything else here does."""


def s3a_read_settings(path: StoragePath) -> dict[str, str]:
    """Return Spark's settings for reading below a path; none for a folder. Needs the jars of the set `store`."""
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
        # Other stores address buckets by path: the host names of buckets would need DNS entries.
        hadoop_options |= {"fs.s3a.endpoint": path.store_config.endpoint, "fs.s3a.path.style.access": "true"}
    return {f"spark.hadoop.{name}": value for name, value in hadoop_options.items()}
