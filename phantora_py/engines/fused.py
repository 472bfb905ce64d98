"""The fused engine: asks engines in order, remembers each answer, and counts who gave it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from phantora_py.engines.analytic import AnalyticEngine
from phantora_py.engines.engine import Cost, Engine
from phantora_py.gpus import Gpu
from phantora_py.signature import Signature


class FusedEngine:
    """First answer wins; the analytic engine comes last and answers everything."""

    name = "fused"

    def __init__(self, gpu: Gpu, engines: Sequence[Engine] | None = None) -> None:
        """`engines` are asked before the analytic one, best source first; None: those that the project comes with."""
        analytic = AnalyticEngine(gpu)
        self._engines: tuple[Engine, ...] = (*(engines or ()), analytic)
        self._answers: dict[Signature, Cost] = {}
        self.later_launch_ns = analytic.floor_ns
        """The cost of a later launch of an op that is already counted."""

    def cost(self, signature: Signature) -> Cost:
        """The first engine's answer; the same object for equal signatures."""
        known = self._answers.get(signature)
        if known is None:
            answers = (engine.cost(signature) for engine in self._engines)
            known = self._answers[signature] = next(answer for answer in answers if answer is not None)
        return known

    @property
    def answered(self) -> Counter[str]:
        """Signatures by the engine that gave their cost."""
        return Counter(cost.engine for cost in self._answers.values())

    @property
    def guessed(self) -> list[Signature]:
        """Signatures whose cost is a guess."""
        return [signature for signature, cost in self._answers.items() if cost.guessed]
