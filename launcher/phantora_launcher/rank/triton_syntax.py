"""Parts of a Triton kernel's source, as Python's syntax tree has them."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

Lookup = Callable[[str], "ast.FunctionDef | None"]
"""A function of the source by its name."""
HARMLESS = frozenset(
    {"range", "min", "max", "len", "print", "float", "int", "bool", "abs", "sum", "isinstance", "tuple"}
)
"""Functions that touch no memory."""


def callee(call: ast.Call) -> tuple[str, ast.expr | None]:
    """The function's name, and what it is a member of."""
    if isinstance(call.func, ast.Attribute):
        return call.func.attr, call.func.value
    return (call.func.id, None) if isinstance(call.func, ast.Name) else ("", None)


def is_load(call: ast.Call) -> bool:
    name = callee(call)[0]
    return "load" in name or name == "gather"


def assignments(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Names with the values that they get."""
    if isinstance(node, ast.Assign):
        for target in node.targets:
            yield from _unpacked(target, node.value)
    elif isinstance(node, (ast.AugAssign, ast.AnnAssign)) and node.value is not None:
        yield from _unpacked(node.target, node.value)
    elif isinstance(node, ast.For):
        yield from _unpacked(node.target, node.iter)


def _unpacked(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(target, ast.Name):
        yield target.id, value
    elif isinstance(target, ast.Tuple):
        parts = value.elts if isinstance(value, ast.Tuple) and len(value.elts) == len(target.elts) else None
        for i, element in enumerate(target.elts):
            yield from _unpacked(element, parts[i] if parts is not None else value)
