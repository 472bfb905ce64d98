"""Reads the msgpack maps of docs/protocol.md strictly: known types, bounded sizes, nothing else is ever decoded."""

from __future__ import annotations

from typing import Any

import msgpack

from phantora_py.frames import MAX_PAYLOAD_BYTES, ProtocolError

_U32_MAX = 2**32 - 1
_U64_MAX = 2**64 - 1
_MAX_ITEMS = 1 << 20
_NO_DEFAULT: Any = object()


def _no_extension(code: int, data: bytes) -> Any:
    raise ProtocolError(f"msgpack extension type {code} is not allowed")


class Fields:
    """A decoded map whose values are checked when they are asked for."""

    def __init__(self, table: dict[str, Any], what: str) -> None:
        self.table = table
        self._what = what

    @classmethod
    def decode(cls, payload: bytes, what: str) -> Fields:
        """Raises ProtocolError unless `payload` is one msgpack map with text keys. `what` names it in errors."""
        try:
            value = msgpack.unpackb(
                payload,
                raw=False,
                strict_map_key=True,
                use_list=True,
                ext_hook=_no_extension,
                max_str_len=MAX_PAYLOAD_BYTES,
                max_bin_len=MAX_PAYLOAD_BYTES,
                max_array_len=_MAX_ITEMS,
                max_map_len=_MAX_ITEMS,
                max_ext_len=0,
            )
        except ProtocolError:
            raise
        except Exception as error:  # msgpack raises a dozen kinds, RecursionError and UnicodeDecodeError among them
            raise ProtocolError(f"{what} is not valid msgpack: {error or type(error).__name__}") from error
        if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
            raise ProtocolError(f"{what} is not a map with text keys")
        return cls(value, what)

    def integer(self, key: str, low: int = 0, high: int = _U32_MAX, default: int | None = None) -> int:
        """An integer from `low` to `high`; `default` (None: there is none) where the map lacks it."""
        value = self._get(key, _NO_DEFAULT if default is None else default)
        if type(value) is not int or not low <= value <= high:
            raise self._wrong(key, value, f"an integer from {low} to {high}")
        return value

    def wide(self, key: str, default: int | None = None) -> int:
        """An unsigned integer of 64 bits."""
        return self.integer(key, 0, _U64_MAX, default)

    def text(self, key: str, default: str = _NO_DEFAULT) -> str:
        value = self._get(key, default)
        if not isinstance(value, str):
            raise self._wrong(key, value, "text")
        return value

    def blob(self, key: str) -> bytes:
        value = self._get(key, _NO_DEFAULT)
        if not isinstance(value, bytes):
            raise self._wrong(key, value, "bytes")
        return value

    def items(self, key: str, default: list[Any] = _NO_DEFAULT) -> list[Any]:
        value = self._get(key, default)
        if not isinstance(value, list):
            raise self._wrong(key, value, "a list")
        return value

    def maps(self, key: str, default: list[Any] = _NO_DEFAULT) -> list[Fields]:
        """A list of maps with text keys."""
        return [Fields(self._map(key, item), f"{self._what}.{key}") for item in self.items(key, default)]

    def texts(self, key: str, default: list[Any] = _NO_DEFAULT) -> list[str]:
        values = self.items(key, default)
        for value in values:
            if not isinstance(value, str):
                raise self._wrong(key, value, "text")
        return values

    def __contains__(self, key: str) -> bool:
        return key in self.table

    def _map(self, key: str, value: Any) -> dict[str, Any]:
        if not isinstance(value, dict) or not all(isinstance(name, str) for name in value):
            raise self._wrong(key, value, "a map with text keys")
        return value

    def _get(self, key: str, default: Any) -> Any:
        value = self.table.get(key, default)
        if value is _NO_DEFAULT:
            raise ProtocolError(f"{self._what} lacks {key!r}")
        return value

    def _wrong(self, key: str, value: Any, expected: str) -> ProtocolError:
        return ProtocolError(f"{self._what}: {key!r} is {_shorten(value)}, not {expected}")


def _shorten(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
