"""Cost engines: how long a launch takes on a GPU, from its signature."""

from phantora_py.engines.analytic import AnalyticEngine
from phantora_py.engines.engine import Cost, Engine
from phantora_py.engines.fused import FusedEngine

__all__ = ["AnalyticEngine", "Cost", "Engine", "FusedEngine"]
