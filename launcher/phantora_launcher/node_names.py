"""Host names of the emulated nodes."""

import re


def node_name(cluster: str, node: int) -> str:
    """A host name that is valid whatever the cluster is called: "titan-h100-0"."""
    stem = re.sub(r"[^A-Za-z0-9]+", "-", cluster).strip("-").lower()[:50] or "node"
    return f"{stem}-{node}"
