"""Facts about a Python file, from its text alone: the modules, paths and fixtures that it uses."""

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tools.affected.path_expressions import Tokens, dotted, path_of

_PATH_LIKE = re.compile(r"[\w.@+-]+(/[\w.@+-]+)*/?")
_PROGRAM = re.compile(r"(?m)^\s*from ([\w.]+) import (.+)$|^\s*import ([\w.]+)|-m ([\w.]+)")
"""Import statements in strings, and starts of modules."""


@dataclass
class Part:
    """Uses in a file, or in one definition of it."""

    names: list[str] = field(default_factory=list)
    """Full names of imported things."""
    own: list[str] = field(default_factory=list)
    """Parts of the same file."""
    paths: list[Tokens] = field(default_factory=list)
    strings: list[str] = field(default_factory=list)
    """Strings that may be a path, or the full name of a module or of a name in it."""
    fixtures: list[str] = field(default_factory=list)
    """Fixtures that tests and fixtures ask for."""


@dataclass
class PythonFacts:
    """Uses of a file, by part."""

    imports: dict[str, str] = field(default_factory=dict)
    """Full names of imported things, by their names in the file."""
    for_types: dict[str, str] = field(default_factory=dict)
    """Full names of things that only type checkers import, by their names in the file."""
    constants: dict[str, list[Tokens]] = field(default_factory=dict)
    """All values in the file of names that may be paths."""
    parts: dict[str, Part] = field(default_factory=dict)
    """Parts by the name of their definition. The part with the empty name has everything else."""
    always: list[str] = field(default_factory=list)
    """Parts that every test below the file runs: hooks, and automatic fixtures."""


def facts_of(text: str, *, by_definition: bool = False) -> PythonFacts:
    """Return the facts of a file.

    Args:
        text: Content of the file.
        by_definition: Make a part of each definition at the top of the file: a test below a `conftest.py` uses some.

    Raises:
        SyntaxError: The text is not Python.

    """
    tree = ast.parse(text)
    facts = PythonFacts(parts={"": Part()})
    nodes = [*ast.walk(tree)]
    _read_imports(nodes, facts)
    for name, value in _assigned(nodes):
        facts.constants.setdefault(name, []).append(value)
    annotations = Part()
    for statement in tree.body:
        name = statement.name if by_definition and isinstance(statement, ast.FunctionDef | ast.ClassDef) else ""
        if isinstance(statement, ast.FunctionDef) and name and (name.startswith("pytest_") or _is_autouse(statement)):
            facts.always.append(name)
        part = facts.parts.setdefault(name, Part())
        _Reader(facts, part, annotations if by_definition else part).visit(statement)
    if not by_definition:
        facts.parts[""].fixtures = [*{*facts.parts[""].fixtures} - _own_fixtures(tree)]
    _tidy(facts, annotations)
    return facts


def _read_imports(nodes: Sequence[ast.AST], facts: PythonFacts) -> None:
    for_types = {id(node) for branch in nodes if _is_for_types(branch) for node in ast.walk(branch)}
    for node in nodes:
        imports = facts.for_types if id(node) in for_types else facts.imports
        if isinstance(node, ast.ImportFrom) and node.module:
            imports |= {name.asname or name.name: f"{node.module}.{name.name}" for name in node.names}
        elif isinstance(node, ast.Import):
            imports |= {name.asname or name.name: name.name for name in node.names}


def _is_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and dotted(node.test) in {"TYPE_CHECKING", "typing.TYPE_CHECKING"}


def _assigned(nodes: Sequence[ast.AST]) -> Iterator[tuple[str, Tokens]]:
    """Yield names and the paths assigned to them."""
    for node in nodes:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value and (path := path_of(node.value)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from ((target.id, path) for target in targets if isinstance(target, ast.Name))


def _is_autouse(node: ast.FunctionDef) -> bool:
    calls = [expression for expression in node.decorator_list if isinstance(expression, ast.Call)]
    return any(keyword.arg == "autouse" for call in calls for keyword in call.keywords)


def _is_fixture(node: ast.FunctionDef) -> bool:
    decorators = [
        expression.func if isinstance(expression, ast.Call) else expression for expression in node.decorator_list
    ]
    return any(dotted(decorator).endswith("fixture") for decorator in decorators)


def _asked_for(node: ast.FunctionDef) -> set[str]:
    """Return the fixtures that the arguments of a test or fixture request."""
    if not node.name.startswith("test_") and not _is_fixture(node):
        return set()
    calls = [expression for expression in node.decorator_list if isinstance(expression, ast.Call)]
    named = [argument for call in calls if dotted(call.func).endswith("parametrize") for argument in call.args[:1]]
    texts = [node.value for names in named for node in ast.walk(names) if isinstance(node, ast.Constant)]
    parametrized = {name.strip() for text in texts for name in str(text).split(",")}
    return {arg.arg for arg in (*node.args.args, *node.args.kwonlyargs)} - parametrized


def _own_fixtures(tree: ast.Module) -> set[str]:
    """Return the fixtures of a file that replace those of the same name elsewhere, and do not request them."""
    functions = [stmt for stmt in tree.body if isinstance(stmt, ast.FunctionDef) and _is_fixture(stmt)]
    return {function.name for function in functions if function.name not in _asked_for(function)}


def _tidy(facts: PythonFacts, annotations: Part) -> None:
    """Sort and deduplicate the result, and count imports that no name uses, as they are re-exported or have effects."""
    used = {name for part in (annotations, *facts.parts.values()) for name in part.names}
    beginnings = {name[:end] for name in used for end in range(len(name) + 1) if name[end : end + 1] in {"", "."}}
    facts.parts[""].names += [name for name in facts.imports.values() if name not in beginnings]
    for part in facts.parts.values():
        part.own = sorted({*part.own} & (facts.parts.keys() - {""}))
        part.names, part.strings, part.fixtures = map(sorted, map(set, (part.names, part.strings, part.fixtures)))


class _Reader(ast.NodeVisitor):
    """Collects the uses of a part."""

    def __init__(self, facts: PythonFacts, part: Part, annotations: Part) -> None:
        self._facts = facts
        self._part = part
        self._annotations = annotations

    def generic_visit(self, node: ast.AST) -> None:
        """Visit a path as a whole, and other nodes by their parts."""
        path = path_of(node)
        if path is None or not path[0].startswith("@"):
            super().generic_visit(node)
            return
        if len(path) > 1 or self._may_be_path(path[0][1:]):
            self._part.paths.append(path)
        self._use_all(node)

    def visit_Expr(self, node: ast.Expr) -> None:
        """Skip docstrings, which use nothing."""
        if not isinstance(node.value, ast.Constant):
            self.visit(node.value)

    def visit_Assign(self, node: ast.Assign) -> None:
        """Count a path where its name is used, not where it is assigned."""
        if isinstance(node.targets[0], ast.Name) and path_of(node.value):
            self._use_all(node.value)
        else:
            self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        """Visit the annotation separately."""
        self._visit_annotation(node.annotation)
        if node.value:
            self.visit(node.value)

    def visit_arg(self, node: ast.arg) -> None:
        """Visit the annotation separately."""
        self._visit_annotation(node.annotation)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        """Visit the return annotation separately, and the arguments as fixtures."""
        self._part.fixtures += _asked_for(node)
        self._visit_annotation(node.returns)
        for child in ast.iter_child_nodes(node):
            if child is not node.returns:
                self.visit(child)

    def visit_Call(self, node: ast.Call) -> None:
        """Visit a call, and the fixtures that it names."""
        if dotted(node.func).endswith(("usefixtures", "getfixturevalue")):
            self._part.fixtures += [str(arg.value) for arg in node.args if isinstance(arg, ast.Constant)]
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        """Record a string that may name something."""
        if isinstance(node.value, str):
            self._use_string(node.value)

    def _visit_annotation(self, node: ast.expr | None) -> None:
        if node:
            _Reader(self._facts, self._annotations, self._annotations).visit(node)

    def _may_be_path(self, name: str) -> bool:
        return name in self._facts.constants or name.rpartition(".")[2].isupper()

    def _use_all(self, node: ast.AST) -> None:
        """Record the names and strings of a path."""
        if name := dotted(node):
            self._use_name(name)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            self._use_string(node.value)
        else:
            for child in ast.iter_child_nodes(node):
                self._use_all(child)

    def _use_name(self, name: str) -> None:
        beginning, rest = name, ""
        while beginning and beginning not in self._facts.imports:
            beginning, _, last = beginning.rpartition(".")
            rest = f".{last}{rest}"
        if beginning:
            self._part.names.append(self._facts.imports[beginning] + rest)
        else:
            self._part.own.append(name.partition(".")[0])

    def _use_string(self, text: str) -> None:
        if _PATH_LIKE.fullmatch(text):
            self._part.strings.append(text)
        for module, names, imported, started in _PROGRAM.findall(text):
            listed = [f"{module}.{name.strip()}" for name in names.split(",")] if module else []
            self._part.strings += [*listed, *filter(None, (imported, started))]
