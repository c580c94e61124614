"""Page of the public interface, docs/api.md, from docstrings and signatures."""

import re
import textwrap
from collections.abc import Iterator

import griffe

from tools import paths

FILE = paths.ROOT / "docs" / "api.md"

PUBLIC_MODULES = (
    "soperator_pulumi",
    "soperator_pulumi.testing",
    "soperator_pulumi.policy",
    "soperator_pulumi.policy.recorded",
    "soperator_pulumi.policy.pack",
    "soperator_pulumi.manifests",
    "soperator_pulumi.stack.program",
    "soperator_pulumi.errors",
    "soperator_pulumi.spec.args",
)
"""Modules for users. Their names without an underscore in front are the package's interface."""

INTRODUCTION = """\
# Python API

Public names of the package. A change of one stands in the changelog; other names may change in any version. `make docs`
writes this page from the docstrings.
"""

_EXAMPLE = re.compile(r"(?m)^(?P<title>.*)::\n\n(?P<code>(?:(?: {4}.*)?\n)+)")
_LINE_WIDTH = 100
_KEYWORD_ONLY = griffe.ParameterKind.keyword_only
_STARS = {griffe.ParameterKind.var_positional: "*", griffe.ParameterKind.var_keyword: "**"}


def text() -> str:
    """Return the whole page."""
    found = modules()
    contents = "".join(_contents(module) for module in found)
    return f"{INTRODUCTION}\n| name | meaning |\n|---|---|\n{contents}" + "".join(_module(module) for module in found)


def modules() -> list[griffe.Module]:
    """Return the public modules."""
    package = griffe.load("soperator_pulumi", search_paths=[str(paths.ROOT)], docstring_parser="google")
    collection = package.modules_collection
    return [collection[path] for path in PUBLIC_MODULES]


def public_objects(module: griffe.Module) -> dict[str, griffe.Object]:
    """Return the public objects of a module by name: those of `__all__`, or else those that are defined there."""
    defined = [name for name, each in module.members.items() if not (name.startswith("_") or each.is_alias)]
    names = defined if module.exports is None else [str(each) for each in module.exports]
    return {name: _target(module[name]) for name in names if not module[name].is_module}


def public_members(described: griffe.Class) -> dict[str, griffe.Object]:
    """Return the public members of a class by name, without inherited ones."""
    return {name: _target(each) for name, each in described.members.items() if not name.startswith("_")}


def examples(described: griffe.Object) -> Iterator[str]:
    """Yield the code in a docstring: indented lines after `::`."""
    for found in _EXAMPLE.finditer(f"{_text(described)}\n"):
        yield textwrap.dedent(found["code"]).strip()


def is_typed_dictionary(described: griffe.Object) -> bool:
    """Return whether a class names the keys of a dictionary. The base of all may stand in another module."""
    return isinstance(described, griffe.Class) and described.name.endswith("Args")


def _contents(module: griffe.Module) -> str:
    rows = [f"| **{module.path}** | {_gist(module)} |\n"]
    rows += [f"| [`{name}`](#{name.lower()}) | {_gist(each)} |\n" for name, each in public_objects(module).items()]
    return "".join(rows)


def _module(module: griffe.Module) -> str:
    parts = [f"\n## {module.path}\n", *_docstring(module)]
    for name, each in public_objects(module).items():
        parts += [f"### {name}\n", *_object(name, each)]
    return "\n".join(parts)


def _object(name: str, described: griffe.Object) -> list[str]:
    if isinstance(described, griffe.Class):
        return _typed_dictionary(described) if is_typed_dictionary(described) else _class(described)
    if isinstance(described, griffe.Function):
        return [_code(_signature(name, described)), *_docstring(described)]
    return [_code(f"{name} = {getattr(described, 'value', '...')}"), *_docstring(described)]


def _class(described: griffe.Class) -> list[str]:
    parts = [_code(f"class {described.name}({', '.join(map(str, described.bases))})".replace("()", ""))]
    constructor = described.members.get("__init__")
    if not isinstance(constructor, griffe.Function):
        parts += _docstring(described)
    elif "scope" in constructor.parameters:
        parts += [*_docstring(described), "Made by `SlurmCluster`, for reading.\n"]
    else:
        parts += [_code(_signature(described.name, constructor)), *_docstring(described), *_docstring(constructor)]
    members = public_members(described)
    attributes = [each for each in members.values() if isinstance(each, griffe.Attribute)]
    if attributes:
        rows = "".join(
            f"| `{each.name}` | `{_cell(each.annotation)}` | {_cell(_text(each))} |\n" for each in attributes
        )
        parts.append(f"| attribute | type | meaning |\n|---|---|---|\n{rows}")
    for name, each in members.items():
        if isinstance(each, griffe.Function):
            parts += [f"#### {described.name}.{name}\n", _code(_signature(name, each)), *_docstring(each)]
    return parts


def _typed_dictionary(described: griffe.Class) -> list[str]:
    """Return the keys with their types. Their meanings stand in docs/configuration.md."""
    options = [f"{key}={value}" for key, value in described.keywords.items()]
    head = f"class {described.name}({', '.join([*map(str, described.bases), *options])}):"
    members = public_members(described).values()
    keys = [f"    {each.name}: {each.annotation}" for each in members if isinstance(each, griffe.Attribute)]
    return [_code("\n".join([head, *(keys or ["    ..."])])), *_docstring(described)]


def _signature(name: str, function: griffe.Function) -> str:
    """Return a signature: on one line if it fits, else with a line for each parameter."""
    parameters = [each for each in function.parameters if each.name != "self"]
    words = [_parameter(each) for each in parameters]
    first = next((at for at, each in enumerate(parameters) if each.kind is _KEYWORD_ONLY), None)
    if first is not None:
        words.insert(first, "*")
    returns = f" -> {function.returns}" if name == function.name else ""
    line = f"{name}({', '.join(words)}){returns}"
    return (
        line
        if len(line) <= _LINE_WIDTH
        else "\n".join([f"{name}(", *(f"    {each}," for each in words), f"){returns}"])
    )


def _parameter(parameter: griffe.Parameter) -> str:
    star = _STARS.get(parameter.kind, "") if parameter.kind else ""
    default = "" if star or parameter.default is None else f" = {parameter.default}"
    return f"{star}{parameter.name}: {parameter.annotation}{default}"


def _docstring(described: griffe.Object) -> list[str]:
    """Return a docstring as Markdown, with a list for each of its sections."""
    parts: list[str] = []
    for section in described.docstring.parsed if described.docstring else ():
        match section:
            case griffe.DocstringSectionText():
                parts.append(f"{_with_fences(section.value)}\n")
            case griffe.DocstringSectionParameters():
                parts.append("".join(f"- `{each.name}`: {_cell(each.description)}\n" for each in section.value))
            case griffe.DocstringSectionRaises():
                parts.append(
                    "".join(f"Raises `{each.annotation}`: {_cell(each.description)}\n" for each in section.value)
                )
            case _:
                raise TypeError(f"{described.path}: a section of the kind {section.kind.value} has no form here")
    return parts


def _with_fences(text: str) -> str:
    """Return text with its code (`Example::`, then indented lines) as Markdown has it."""
    return _EXAMPLE.sub(
        lambda found: f"{found['title']}:\n\n{_code(textwrap.dedent(found['code']).strip())}\n", f"{text}\n"
    ).strip()


def _code(text: str) -> str:
    return f"```python\n{text}\n```\n"


def _cell(text: object) -> str:
    return " ".join(str(text).split()).replace("|", "\\|")


def _gist(described: griffe.Object) -> str:
    """Return the first paragraph of a docstring."""
    return _cell(_text(described).partition("\n\n")[0])


def _text(described: griffe.Object) -> str:
    return described.docstring.value if described.docstring else ""


def _target(found: griffe.Object | griffe.Alias) -> griffe.Object:
    return found.final_target if isinstance(found, griffe.Alias) else found
