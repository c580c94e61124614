"""Path expressions in Python code, `paths.ROOT / "docs" / f"{name}.md"`, as parts, without running it."""

import ast
from collections.abc import Sequence

Tokens = list[str]
"""A path as the code joins it: `=docs` is a literal with `*` for what varies, `@paths.ROOT` a name to look up, `~.sh`
another suffix, and `?` a part of which nothing is known."""

_BEFORE = {"joinpath": [], "glob": [], "with_name": ["=.."], "rglob": ["=**"]}
"""Methods that join their arguments, and what they put before those."""

_SAME = ("resolve", "absolute", "iterdir")
_CONSTRUCTORS = ("Path", "PurePath", "PurePosixPath", "str")


def path_of(node: ast.AST) -> Tokens | None:
    """Return the path that an expression means; None for other expressions."""
    match node:
        case ast.Constant(value=str(text)):
            return [f"={text}"]
        case ast.JoinedStr(values=values):
            return _formatted(values)
        case ast.Attribute(value=value, attr="parent"):
            return _extended(value, ["=.."])
        case ast.Subscript(value=ast.Attribute(value=value, attr="parents"), slice=ast.Constant(value=int(count))):
            return _extended(value, ["=.."] * (count + 1))
        case ast.Name() | ast.Attribute():
            return [f"@{name}"] if (name := dotted(node)) else None
        case ast.BinOp(left=left, op=ast.Div(), right=right):
            return _extended(left, _as_parts([right]))
        case ast.Call(func=ast.Name(id=name), args=[first, *others]):
            return _extended(first, _as_parts(others)) if name in _CONSTRUCTORS else _of_package(name, first)
        case ast.Call(func=ast.Attribute(value=value, attr=method), args=arguments):
            return _of_method(value, method, arguments)
    return None


def dotted(node: ast.AST) -> str:
    """Return a name with its attributes, such as `paths.ROOT`; empty for any other expression."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=value, attr=attribute) if base := dotted(value):
            return f"{base}.{attribute}"
    return ""


def _of_package(function: str, package: ast.AST) -> Tokens | None:
    """Return the data folder of a package, from `files("soperator_pulumi.platform")`."""
    name = package.value if isinstance(package, ast.Constant) else dotted(package)
    return [f"@{name}.__file__", "=.."] if function == "files" and isinstance(name, str) and name else None


def _of_method(value: ast.AST, method: str, arguments: Sequence[ast.expr]) -> Tokens | None:
    match method, arguments:
        case "with_suffix", [ast.Constant(value=str(suffix))]:
            return _extended(value, [f"~{suffix}"])
        case _ if method in _BEFORE:
            return _extended(value, [*_BEFORE[method], *_as_parts(arguments)])
    return path_of(value) if method in _SAME else None


def _extended(base: ast.AST, more: Tokens) -> Tokens | None:
    found = path_of(base)
    return None if found is None else [*found, *more]


def _as_parts(nodes: Sequence[ast.AST]) -> Tokens:
    return [token for node in nodes for token in path_of(node) or ["?"]]


def _formatted(values: Sequence[ast.AST]) -> Tokens:
    """Return an f-string as a path. In f"{ROOT}/docs", it begins with the first value."""
    texts = [str(value.value) if isinstance(value, ast.Constant) else "*" for value in values]
    match values:
        case [ast.FormattedValue(value=base), ast.Constant(value=str(text)), *_] if text.startswith("/"):
            return [*_as_parts([base]), "=" + "".join(texts[1:]).lstrip("/")]
    return ["=" + "".join(texts)]
