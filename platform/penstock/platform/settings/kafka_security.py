"""Settings for the broker's security. Secrets appear as references only."""

from typing import Literal, Self

from pydantic import Field, model_validator

from penstock.core.secret_reference import SecretReference
from penstock.core.settings import SettingsSection


class KafkaSecretSettings(SettingsSection):
    """References to the passwords of the platform's Kafka users: a file, or env:NAME for a variable."""

    ingestion: SecretReference = Field(
        "", description="secret reference: password of the user that writes topics"
    )
    host: SecretReference = Field("", description="secret reference: password of the user that reads topics")
    topics: SecretReference = Field(
        "", description="secret reference: password of the user that creates topics"
    )


class KafkaSecuritySettings(SettingsSection):
    """How clients authenticate. Secrets are references, and are read when a client is created."""

    protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = Field(
        "PLAINTEXT", description="security protocol of the broker"
    )
    mechanism: Literal["", "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] = Field(
        "", description="SASL mechanism; required if the protocol is a SASL one"
    )
    ca: str = Field("", description="file of trusted CA certificates; default: those of the system")
    secrets: KafkaSecretSettings = KafkaSecretSettings()

    @model_validator(mode="after")
    def _check_mechanism(self) -> Self:
        if self.protocol.startswith("SASL_") != bool(self.mechanism):
            requirement = "needs a mechanism" if not self.mechanism else "takes no mechanism"
            raise ValueError(f"kafka.security.protocol {self.protocol} {requirement}. Set both, or neither")
        return self

    @property
    def is_secured(self) -> bool:
        """Whether clients need more than the broker's address."""
        return self.protocol != "PLAINTEXT"
