"""Flow-level network and timed event graph (C++ core with a pybind11 binding)."""

from phantora_netsim._core import RECORD_BYTES, Activity, Network, Simulation

__all__ = ["RECORD_BYTES", "Activity", "Network", "Simulation"]
