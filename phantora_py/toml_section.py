"""What sections of a TOML file have in common: unknown keys are mistakes, figures have units and bounds."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field


class TomlSection(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


Gigabytes = Annotated[float, Field(ge=1e-3, le=100_000, allow_inf_nan=False)]
Gigabits = Gigabytes
Microseconds = Annotated[float, Field(ge=0, le=1_000_000)]
Milliseconds = Annotated[float, Field(ge=0, le=1e9)]
Slowdown = Annotated[float, Field(ge=1, le=100)]
Count = Annotated[int, Field(ge=1, le=4096, strict=True)]


def nanoseconds(time_ms: float) -> int:
    """As the simulation counts."""
    return round(time_ms * 1e6)
