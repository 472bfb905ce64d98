"""What every cost engine is: a function from a signature to a duration, with its provenance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from phantora_py.signature import Signature


@dataclass(frozen=True, slots=True)
class Cost:
    """How long a launch occupies its stream, and who says so."""

    duration_ns: int
    engine: str
    """Name of the engine that answered."""
    kind: str
    """Op class by which it was costed: "gemm", "attention", "elementwise", …"""
    guessed: bool = False
    """The op is not one that the engine knows; it went by the bytes or threads that it can see."""
    busy_ns: int = 0
    """Of the duration, the time for which the whole GPU's memory or arithmetic would be busy with it: no kernel beside
    it finds any of that free. 0: not known."""
    doubt: str = ""
    """What is guessed about an op that the engine does know, for people."""


class Engine(Protocol):
    """One source of costs for one GPU. Deterministic: equal signatures get equal costs, on every machine."""

    @property
    def name(self) -> str: ...

    def cost(self, signature: Signature) -> Cost | None:
        """The cost, or None when this engine cannot tell."""
        ...
