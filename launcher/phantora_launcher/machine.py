"""machine.conf: what a rank's machine looks like to the runtime (docs/protocol.md)."""

from __future__ import annotations

import time
from collections.abc import Mapping
from enum import StrEnum

from phantora_py.cluster import Cluster
from phantora_py.host import DEFAULT_HOST


class HostTime(StrEnum):
    """What a rank's host clock counts between two calls into the emulated GPU."""

    MODELLED = "modelled"
    """Calibrated cost of each dispatched op, launch and call; the same on every machine."""
    MEASURED = "measured"
    """CPU time of this machine's thread, less phantora's own."""
    ZERO = "zero"
    """Nothing: the host is infinitely fast."""


def machine_lines(cluster: Cluster, host_time: HostTime, value_limit_bytes: int | None) -> Mapping[str, object]:
    gpu = cluster.gpu
    lines: dict[str, object] = {
        "device.name": gpu.device_name,
        "device.count": cluster.node.gpus,
        "device.memory_bytes": cluster.memory_bytes,
        "device.context_bytes": gpu.context_bytes,
        "device.sm_count": gpu.sm_count,
        "device.cc_major": gpu.compute_capability[0],
        "device.cc_minor": gpu.compute_capability[1],
        "device.l2_bytes": gpu.l2_bytes,
        "device.hbm_bytes_per_s": round(gpu.hbm_bytes_per_s),
        "device.clock_khz": gpu.clock_khz,
        "device.shared_per_block_optin": gpu.shared_per_block_optin,
        "device.shared_per_sm": gpu.shared_per_sm,
        "device.nvlink_count": gpu.nvlinks if cluster.node.nvlink.kind != "none" else 0,
        "device.multicast": int(cluster.node.nvlink.kind == "nvswitch"),
        "host.policy": host_time.value,
        "host.dispatch_ns": DEFAULT_HOST.dispatch_ns,
        "host.launch_ns": DEFAULT_HOST.launch_ns,
        "host.call_ns": DEFAULT_HOST.call_ns,
        "host.sync_ns": DEFAULT_HOST.sync_ns,
        # Whole seconds: differences of two readings then round alike in every run.
        "job.epoch_ns": int(time.time()) * 1_000_000_000,
    }
    if value_limit_bytes is not None:
        lines["value.limit_bytes"] = value_limit_bytes
    return lines
