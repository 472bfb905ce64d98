"""The mask of an attention template of Inductor's: which keys its source lets a query see."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from phantora_launcher.rank.triton_syntax import HARMLESS, Lookup, assignments, callee, is_load

_RESULT = "mask_mod_output"
"""What templates call whether a query sees a key."""
_POSITIONS = frozenset({"m", "n"})
"""What attention templates call the positions of a query and of a key where they apply a mask."""


@dataclass(frozen=True)
class AttentionMask:
    """Keys that queries see."""

    window: int | None = None
    """So many at most, if the source bounds the distance on both sides."""


def find_mask(function: ast.FunctionDef, look_up: Lookup) -> AttentionMask | None:
    """Of `function` or one called from there: None if no order of query and key positions has a part in it.

    Templates go on to mask what lies beyond the last key: an order too, but of a position and a length.
    """
    seen: set[str] = set()
    waiting = [function]
    while waiting:
        each = waiting.pop()
        seen.add(each.name)
        values = _values(each)
        if _is_ordered(values):
            return AttentionMask(_window(values))
        for node in ast.walk(each):
            name = callee(node)[0] if isinstance(node, ast.Call) else ""
            helper = look_up(name) if name and name not in seen and name not in HARMLESS else None
            if helper is not None:
                waiting.append(helper)
    return None


def _values(function: ast.FunctionDef) -> dict[str, list[ast.expr]]:
    """All that each name is ever assigned."""
    values: dict[str, list[ast.expr]] = {}
    for node in ast.walk(function):
        for name, value in assignments(node):
            values.setdefault(name, []).append(value)
    return values


def _is_ordered(values: dict[str, list[ast.expr]]) -> bool:
    """Whether a comparison that the result comes from has both positions in it."""
    return any(
        isinstance(node, ast.Compare)
        and isinstance(node.ops[0], (ast.GtE, ast.LtE, ast.Gt, ast.Lt))
        and _POSITIONS.issubset(part.id for part in _sources(node, values) if isinstance(part, ast.Name))
        for node in _sources(ast.Name(_RESULT), values)
    )


def _sources(value: ast.AST, values: dict[str, list[ast.expr]]) -> Iterator[ast.AST]:
    """Parts of `value` and of all that it is computed from, down to positions and to what is loaded."""
    seen: set[str] = set()
    waiting = [value]
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, ast.Name) and node.id not in seen | _POSITIONS:
            seen.add(node.id)
            waiting += values.get(node.id, ())
        if not (isinstance(node, ast.Call) and is_load(node)):
            waiting += ast.iter_child_nodes(node)


def _window(values: dict[str, list[ast.expr]]) -> int | None:
    """Keys between the bounds on the distance of query and key."""
    nearest: dict[tuple[int, int], int] = {}
    for condition in _conditions(values):
        bound = _bound_of(condition, values)
        if bound is not None:
            direction, distance = bound
            nearest[direction] = min(nearest.get(direction, distance), distance)
    behind, ahead = nearest.get((1, -1)), nearest.get((-1, 1))
    return max(behind + ahead + 1, 0) if behind is not None and ahead is not None else None


def _conditions(values: dict[str, list[ast.expr]]) -> Iterator[ast.Compare]:
    """Comparisons that all have to hold for the result."""
    seen: set[str] = set()
    waiting: list[ast.expr] = [ast.Name(_RESULT)]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Compare):
            yield node
        elif isinstance(node, ast.Name) and node.id not in seen:
            seen.add(node.id)
            waiting += values.get(node.id, ())
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd):
            waiting += (node.left, node.right)
        elif isinstance(node, ast.Call) and _is_conjunction(node):
            waiting += node.args[:2]


def _is_conjunction(call: ast.Call) -> bool:
    if callee(call)[0] == "where":
        return len(call.args) == 3 and isinstance(call.args[2], ast.Constant) and call.args[2].value is False
    return callee(call)[0] == "logical_and"


_Linear = tuple[int, int, int]
"""So many times m, n and 1."""


def _bound_of(compare: ast.Compare, values: dict[str, list[ast.expr]]) -> tuple[tuple[int, int], int] | None:
    """((1, -1), d): m - n is at most d; ((-1, 1), d): n - m is. None if it says something else."""
    left, right = _linear(compare.left, values), _linear(compare.comparators[0], values)
    if left is None or right is None:
        return None
    if isinstance(compare.ops[0], (ast.Gt, ast.GtE)):
        left, right = right, left
    m, n, rest = (a - b for a, b in zip(left, right, strict=True))
    is_strict = isinstance(compare.ops[0], (ast.Lt, ast.Gt))
    is_order = is_strict or isinstance(compare.ops[0], (ast.LtE, ast.GtE))
    return ((m, n), -rest - is_strict) if is_order and abs(m) == 1 and m == -n else None


def _linear(node: ast.expr, values: dict[str, list[ast.expr]], depth: int = 32) -> _Linear | None:
    if depth == 0:
        return None
    match node:
        case ast.Name("m"):
            return 1, 0, 0
        case ast.Name("n"):
            return 0, 1, 0
        case ast.Name(name) if len(values.get(name, ())) == 1:
            return _linear(values[name][0], values, depth - 1)
        case ast.Constant(int(number)):
            return 0, 0, number
        case ast.UnaryOp(ast.USub(), operand):
            inner = _linear(operand, values, depth - 1)
            return inner and (-inner[0], -inner[1], -inner[2])
        case ast.Call(ast.Attribute(attr="full"), [_, fill, *_]):
            return _linear(fill, values, depth - 1)
        case ast.Call(ast.Attribute(value=inside, attr="to")):
            return _linear(inside, values, depth - 1)
        case ast.BinOp(a, ast.Add() | ast.Sub() as operation, b):
            left, right = _linear(a, values, depth - 1), _linear(b, values, depth - 1)
            if left is None or right is None:
                return None
            sign = 1 if isinstance(operation, ast.Add) else -1
            return left[0] + sign * right[0], left[1] + sign * right[1], left[2] + sign * right[2]
    return None
