"""What the source of a Triton kernel tells: which arguments it reads and writes, and the constants in it.

Nothing is executed. What cannot be told is taken to be written.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from phantora_launcher.rank.attention_mask import AttentionMask, find_mask
from phantora_launcher.rank.triton_syntax import HARMLESS, Lookup, assignments, callee, is_load

_CONSTANT = re.compile(r"[A-Z][A-Z0-9_]*|[xyz]numel|r[0-9]*_?numel")
"""Names whose values a cost may follow from: sizes in templates, iteration spaces."""

_LANGUAGE = frozenset({"tl", "language", "tl_math", "math", "libdevice", "core"})
"""Modules of Triton whose functions touch memory only if their name says so."""
_ABOUT_TYPE = frozenset({"dtype", "type", "shape"})
"""Attributes of a pointer that say nothing of where it points."""


@dataclass
class Use:
    """How often a kernel passes over what an argument points to."""

    reads: int = 0
    writes: int = 0


@dataclass
class KernelSource:
    """What a kernel's source tells."""

    arguments: list[str]
    uses: dict[str, Use]
    """By argument; only of those that memory is addressed by."""
    constants: dict[str, int | str]
    """Values by name; a string is the name of the argument that has the value."""
    products: int
    """Calls of tl.dot, in helper functions too."""
    mask: AttentionMask | None
    """That of an attention template, if it orders queries and keys: queries see a part of the keys."""


def read_kernel(source: str, name: str, find_helper: Callable[[str], str | None] | None = None) -> KernelSource | None:
    """What is known of the function `name` in `source`; None if it stores where no argument leads.

    `find_helper` gives the source of functions that it calls and that are not in `source` themselves.
    """
    try:
        functions = _functions(source)
    except SyntaxError:
        return None

    def look_up(callee: str) -> ast.FunctionDef | None:
        if callee not in functions and find_helper is not None:
            text = find_helper(callee)
            if text is not None:
                functions.update({key: value for key, value in _functions(text).items() if key not in functions})
        return functions.get(callee)

    function = functions.get(name)
    if function is None:
        return None
    body = _Body(function, look_up)
    if body.stores_anywhere:
        return None
    arguments = _arguments(function)
    return KernelSource(
        arguments,
        {argument: use for argument, use in body.uses.items() if use.reads or use.writes},
        _constants(function, set(arguments)),
        body.products,
        find_mask(function, look_up),
    )


def _functions(source: str) -> dict[str, ast.FunctionDef]:
    tree = ast.parse(source)
    return {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def _arguments(function: ast.FunctionDef) -> list[str]:
    given = function.args
    return [argument.arg for argument in (*given.posonlyargs, *given.args, *given.kwonlyargs)]


@dataclass
class _Body:
    """Follows pointers through one function, without regard to the order of its statements."""

    function: ast.FunctionDef
    look_up: Lookup
    open: tuple[str, ...] = ()
    """Callers, so that recursion ends."""
    uses: dict[str, Use] = field(default_factory=dict)
    products: int = 0
    stores_anywhere: bool = False

    def __post_init__(self) -> None:
        self._origins: dict[str, frozenset[str]] = {name: frozenset({name}) for name in _arguments(self.function)}
        self.uses = {name: Use() for name in self._origins}
        self._passes: dict[tuple[str, str], set[int]] = {}
        self._follow_assignments()
        self._visit(self.function.body, loop=0)
        for (name, what), loops in self._passes.items():
            setattr(self.uses[name], what, getattr(self.uses[name], what) + len(loops))

    def _follow_assignments(self) -> None:
        pairs = [pair for node in ast.walk(self.function) for pair in assignments(node)]
        changed = True
        while changed:
            changed = False
            for target, value in pairs:
                known = self._origins.get(target, frozenset())
                wider = known | self._origins_of(value)
                if wider != known:
                    self._origins[target] = wider
                    changed = True

    def _origins_of(self, node: ast.AST) -> frozenset[str]:
        """Arguments that the value may be an address from. What is loaded is no address of theirs."""
        if isinstance(node, ast.Name):
            return self._origins.get(node.id, frozenset())
        if isinstance(node, ast.Attribute) and node.attr in _ABOUT_TYPE:
            return frozenset()
        if isinstance(node, ast.Call) and is_load(node):
            return frozenset()
        origins: frozenset[str] = frozenset()
        for child in ast.iter_child_nodes(node):
            origins |= self._origins_of(child)
        return origins

    def _visit(self, nodes: list[ast.stmt] | list[ast.AST], loop: int) -> None:
        for node in nodes:
            if isinstance(node, ast.Call):
                self._call(node, loop)
            inner = id(node) if isinstance(node, (ast.For, ast.While)) else loop
            self._visit(list(ast.iter_child_nodes(node)), inner)

    def _call(self, call: ast.Call, loop: int) -> None:
        name, receiver = callee(call)
        if name == "dot" or name == "dot_scaled":
            self.products += 1
        if receiver is not None and not (isinstance(receiver, ast.Name) and receiver.id in _LANGUAGE):
            self._method(call, name, receiver, loop)
        elif receiver is None and name in HARMLESS:
            return
        elif receiver is None:
            self._function(call, name, loop)
        elif _writes(name):
            self._store(_first(call), loop, reads="atomic" in name)
        elif is_load(call):
            self._note(_first(call), "reads", loop)

    def _method(self, call: ast.Call, name: str, receiver: ast.expr, loop: int) -> None:
        """A tensor descriptor's method, or a function of a module that is not Triton's own."""
        if isinstance(receiver, ast.Name) and receiver.id not in self._origins:
            if receiver.id.endswith("helpers"):
                self._unknown(call, loop)
            return
        if _writes(name):
            self._store(receiver, loop, reads="atomic" in name)
        elif is_load(call):
            self._note(receiver, "reads", loop)

    def _function(self, call: ast.Call, name: str, loop: int) -> None:
        helper = self.look_up(name)
        if helper is None or name in self.open:
            self._unknown(call, loop)
            return
        inner = _Body(helper, self.look_up, (*self.open, self.function.name))
        self.products += inner.products
        self.stores_anywhere |= inner.stores_anywhere
        for parameter, given in _bound(helper, call):
            use = inner.uses.get(parameter, Use())
            for what in ("reads", "writes"):
                if getattr(use, what):
                    self._note(given, what, loop)

    def _unknown(self, call: ast.Call, loop: int) -> None:
        for given in (*call.args, *(keyword.value for keyword in call.keywords)):
            self._note(given, "reads", loop)
            self._note(given, "writes", loop)

    def _store(self, address: ast.expr | None, loop: int, reads: bool) -> None:
        if address is None or not self._origins_of(address):
            self.stores_anywhere = True
            return
        self._note(address, "writes", loop)
        if reads:
            self._note(address, "reads", loop)

    def _note(self, address: ast.expr | None, what: str, loop: int) -> None:
        for name in self._origins_of(address) if address is not None else ():
            if name in self.uses:
                self._passes.setdefault((name, what), set()).add(loop)


def _writes(name: str) -> bool:
    return "store" in name or name.startswith("atomic") or "scatter" in name


def _first(call: ast.Call) -> ast.expr | None:
    if call.args:
        return call.args[0]
    return next((keyword.value for keyword in call.keywords if keyword.arg in ("pointer", "ptr", "desc")), None)


def _bound(function: ast.FunctionDef, call: ast.Call) -> Iterator[tuple[str, ast.expr]]:
    """Parameters of `function` with what `call` gives for them."""
    names = _arguments(function)
    yield from zip(names, call.args, strict=False)
    yield from ((keyword.arg, keyword.value) for keyword in call.keywords if keyword.arg is not None)


def _constants(function: ast.FunctionDef, arguments: set[str]) -> dict[str, int | str]:
    """Sizes: numbers assigned to a name, once and at the top, or arguments that are passed on under another."""
    constants: dict[str, int | str] = {}
    for statement in function.body:
        for name, value in assignments(statement):
            if not _CONSTANT.fullmatch(name):
                continue
            if isinstance(value, ast.Constant) and isinstance(value.value, int):
                constants[name] = int(value.value)
            elif isinstance(value, ast.Name) and value.id in arguments:
                constants[name] = value.id
            elif isinstance(value, ast.Name) and value.id in constants:
                constants[name] = constants[value.id]
    for argument in arguments:
        if _CONSTANT.fullmatch(argument):
            constants.setdefault(argument, argument)
    return constants
