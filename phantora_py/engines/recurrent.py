"""Recurrent networks of cuDNN: the products that they are made of, and which of them wait for one another.

The inputs of a layer are multiplied for all steps at once. The state is multiplied step by step, each after the one
before; layers follow one another as a wave front, in which everything that has no reason to wait runs at once.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeGuard

from phantora_py.engines.gemm import Product, multiplied_type
from phantora_py.signature import Scalar, Signature

_FORWARD, _BACKWARD = "_cudnn_rnn", "_cudnn_rnn_backward"
_GATES = (1, 1, 4, 3)
"""By mode: ReLU, tanh, LSTM, GRU."""


@dataclass(frozen=True, slots=True)
class Recurrent:
    backward: bool
    steps: int
    batch: int
    features: int
    """Of the input."""
    gates: int
    """Of all hidden units."""
    hidden: int
    outputs: int
    """Of one direction: hidden units, or fewer to which they are projected."""
    layers: int
    directions: int
    dtype: str
    """As in a Product."""
    element_bytes: int

    def products(self) -> Iterator[tuple[int, Product]]:
        """Products, with how often one comes after another."""
        for times, active in self._waves():
            yield times, self._product(self.batch, self.gates, self.outputs, active, reads_d=True)
            if self.outputs != self.hidden:
                yield times, self._product(self.batch, self.outputs, self.hidden, active)
        rows = self.steps * self.batch
        for layer in range(self.layers):
            width = self.outputs * self.directions if layer else self.features
            yield 1, self._product(rows, self.gates, width)
            if self.backward:
                yield 1, self._product(self.gates, width + self.outputs, rows)
                if self.outputs != self.hidden:
                    yield 1, self._product(self.outputs, self.hidden, rows)

    def _waves(self) -> Iterator[tuple[int, int]]:
        """How many waves have a step each of so many layers."""
        most = min(self.steps, self.layers)
        for active in range(1, most):
            yield 2, active
        yield self.steps + self.layers - 1 - 2 * (most - 1), most

    def _product(self, m: int, n: int, k: int, layers: int = 1, *, reads_d: bool = False) -> Product:
        """Of each direction of so many layers. The gradient of its first operand takes as many operations."""
        width = self.element_bytes
        return Product(m, n, k, layers * self.directions, self.dtype, width, width, reads_d)


def find_recurrent(signature: Signature) -> Recurrent | None:
    """The network of an op; None for anything else, or if its arguments make no sense."""
    if signature.base_op not in (_FORWARD, _BACKWARD) or not signature.tensors:
        return None
    x = signature.tensors[0]
    given = [scalar for scalar in signature.scalars if scalar is not None]  # a cell, a buffer, dropout's state
    if len(given) < 10 or len(x.shape) < 2:
        return None
    _, mode, hidden, projected, layers, batch_first, _, _, bidirectional, batch_sizes = given[:10]
    if not (
        _is_count(mode) and mode < len(_GATES) and _is_count(hidden) and _is_count(projected) and _is_count(layers)
    ):
        return None
    if isinstance(batch_sizes, tuple) and batch_sizes:  # packed: the sequences of every step, one after another
        steps, batch = len(batch_sizes), math.ceil(x.shape[0] / len(batch_sizes))
    else:
        steps, batch = (x.shape[1], x.shape[0]) if batch_first else (x.shape[0], x.shape[1])
    return Recurrent(
        backward=signature.base_op == _BACKWARD,
        steps=steps,
        batch=batch,
        features=x.shape[-1],
        gates=_GATES[mode] * hidden,
        hidden=hidden,
        outputs=projected or hidden,
        layers=layers,
        directions=2 if bidirectional else 1,
        dtype=multiplied_type(signature, x.dtype),
        element_bytes=x.element_bytes,
    )


def _is_count(scalar: Scalar) -> TypeGuard[int]:
    return isinstance(scalar, int) and scalar >= 0
