"""The fused engine: asks engines in order, remembers each answer, and counts who gave it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from phantora_py.engines.analytic import AnalyticEngine
from phantora_py.engines.engine import Cost, Engine
from phantora_py.gpus import Gpu
from phantora_py.signature import Signature


class FusedEngine:
    """First answer wins. The last engine must answer everything."""

    name = "fused"

    def __init__(self, engines: Sequence[Engine], floor_ns: int) -> None:
        self._engines = tuple(engines)
        self._answers: dict[Signature, Cost] = {}
        self.floor_ns = floor_ns
        """The cost of a later launch of an op that is already counted."""

    def cost(self, signature: Signature) -> Cost:
        """The first engine's answer. Raises LookupError if none has one (none of ours lets that happen)."""
        known = self._answers.get(signature)
        if known is None:
            known = self._answers[signature] = self._ask(signature)
        return known

    def _ask(self, signature: Signature) -> Cost:
        for engine in self._engines:
            if (cost := engine.cost(signature)) is not None:
                return cost
        names = ", ".join(engine.name for engine in self._engines)
        raise LookupError(
            f"no engine of [{names}] has a cost for {signature.key}\n  hint: end the list with an analytic one"
        )

    @property
    def answered(self) -> Counter[str]:
        """Signatures by the engine that gave their cost."""
        return Counter(cost.engine for cost in self._answers.values())

    @property
    def guessed(self) -> list[Signature]:
        """Signatures whose cost is a guess."""
        return [signature for signature, cost in self._answers.items() if cost.guessed]


def default_engine(gpu: Gpu) -> FusedEngine:
    """The engines of a run on this GPU, best source first."""
    analytic = AnalyticEngine(gpu)
    return FusedEngine((analytic,), analytic.floor_ns)
