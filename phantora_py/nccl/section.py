"""The `[nccl]` section of a cluster file."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, field_validator

from phantora_py.nccl.release import LATEST, release
from phantora_py.nccl.settings import Settings
from phantora_py.toml_section import TomlSection


class NcclSection(TomlSection):
    """NCCL as it runs there."""

    version: str = LATEST
    """Release whose tuner decides, like 2.21 or 2.21.5."""
    network: Literal["infiniband", "efa", "efa-1", "slingshot", "ethernet"] = "infiniband"
    """How NCCL speaks with the NICs, each with measured latencies and efficiencies; efa-1: EFA before p5."""
    environment: dict[str, str] = Field(default_factory=dict)
    """NCCL_... variables that every rank has; those that `phantora run` itself is started with go before them."""

    @field_validator("version")
    @classmethod
    def _known_version(cls, version: str) -> str:
        release(version)
        return version

    @field_validator("environment")
    @classmethod
    def _sound_environment(cls, environment: dict[str, str]) -> dict[str, str]:
        Settings.read(environment)
        return environment
