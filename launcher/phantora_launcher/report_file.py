"""Reads a report that `--json FILE` wrote, as far as `phantora compare` looks at it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from phantora_launcher.errors import LaunchError
from phantora_py.report import SCHEMA

_HINT = "name files that `phantora run --json FILE` or `phantora replay --json FILE` wrote, with this version"
_MOST = 2**63


class _Number:
    """From `least` on."""

    def __init__(self, least: int, whole: bool = True) -> None:
        self._least = least
        self._types = int if whole else (int, float)

    def fits(self, value: object) -> bool:
        return isinstance(value, self._types) and not isinstance(value, bool) and self._least <= value < _MOST


_COUNT, _SHARE = _Number(0), _Number(0, whole=False)
_SHAPE: Mapping[str, Any] = {
    "cluster": str,
    "world_size": _Number(1),
    "iteration_ns": (None, _COUNT),
    "iterations": [{"warm_up": bool}],
    "breakdown": (
        None,
        {"device_ns": _COUNT, "compute": _SHARE, "exposed_communication": _SHARE, "idle": _SHARE},
    ),
    "ops": [{"op": str, "category": str, "calls": _COUNT, "device_ns": _COUNT}],
    "tokens": (None, {"per_s": _SHARE}),
    "ranks": [{"peak_allocated_bytes": (None, _COUNT), "peak_reserved_bytes": (None, _COUNT)}],
}
"""A tuple: one of these; a list: each item; None: null."""


def read_report(file: Path) -> dict[str, Any]:
    try:
        report: Any = json.loads(file.read_text(encoding="utf-8"), parse_constant=_refuse)
    except OSError as error:
        raise LaunchError(f"{file}: {error.strerror or error}", _HINT) from error
    except (ValueError, RecursionError) as error:
        raise LaunchError(f"{file} is no JSON: {error}", _HINT) from error
    if not isinstance(report, dict):
        raise LaunchError(f"{file} is no report: it holds no JSON object", _HINT)
    if (schema := report.get("schema")) != SCHEMA:
        raise LaunchError(f"{file}: schema {schema!r}, this version reads {SCHEMA!r}", _HINT)
    if wrong := _wrong(report, _SHAPE, ""):
        raise LaunchError(f"{file}: {wrong} is missing or not what docs/report.md says", _HINT)
    return report


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no number")


def _wrong(value: Any, shape: Any, name: str) -> str:
    """The first part that does not fit; empty: none."""
    if isinstance(shape, tuple):
        return "" if any(not _wrong(value, each, name) for each in shape) else name
    if isinstance(shape, list):
        if not isinstance(value, list):
            return name
        return next((wrong for item in value if (wrong := _wrong(item, shape[0], f"{name}[]"))), "")
    if isinstance(shape, Mapping):
        if not isinstance(value, dict):
            return name
        parts = ((value.get(key, ...), part, f"{name}.{key}".lstrip(".")) for key, part in shape.items())
        return next((wrong for part in parts if (wrong := _wrong(*part))), "")
    if shape is None:
        return "" if value is None else name
    if isinstance(shape, _Number):
        return "" if shape.fits(value) else name
    if not isinstance(value, shape):
        return name
    return "" if shape is not str or value.isprintable() else name
