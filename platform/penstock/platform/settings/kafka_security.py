"""How the broker is secured, as settings: typed, and with secrets by their places alone."""

from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator


class SettingsSection(BaseModel):
    """A group of settings; a name it does not know is refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class KafkaSecretSettings(SettingsSection):
    """Where the password of each of the platform's users is: a file, or env:NAME for a variable."""

    ingestion: str = Field("", description="place of the password of who writes topics")
    host: str = Field("", description="place of the password of who reads topics")
    topics: str = Field("", description="place of the password of who makes topics")


class KafkaSecuritySettings(SettingsSection):
    """How clients get in. Nothing here is secret: secrets are named, and read when a client is made."""

    protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = Field(
        "PLAINTEXT", description="how clients talk to the broker"
    )
    mechanism: Literal["", "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] = Field(
        "", description="how clients log in, where the protocol is a SASL one"
    )
    ca: str = Field("", description="file of the certificates to trust; those of the system without it")
    secrets: KafkaSecretSettings = KafkaSecretSettings()

    @model_validator(mode="after")
    def _check_mechanism(self) -> Self:
        if self.protocol.startswith("SASL_") != bool(self.mechanism):
            requirement = "needs a mechanism" if not self.mechanism else "takes no mechanism"
            raise ValueError(f"kafka.security.protocol {self.protocol} {requirement}: set both, or neither")
        return self

    @property
    def is_secured(self) -> bool:
        """Whether the broker wants more than its address."""
        return self.protocol != "PLAINTEXT"
