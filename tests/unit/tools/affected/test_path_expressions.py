"""Paths in Python code are known without running it."""

import ast

import pytest

from tools.affected.path_expressions import dotted, path_of

PATHS = {
    "'docs/jail.md'": ["=docs/jail.md"],
    "FOLDER": ["@FOLDER"],
    "paths.ROOT / 'docs' / 'jail.md'": ["@paths.ROOT", "=docs", "=jail.md"],
    "Path(__file__).parent / 'data'": ["@__file__", "=..", "=data"],
    "Path(__file__).resolve().parents[2]": ["@__file__", "=..", "=..", "=.."],
    "Path(__file__).with_name('a.sh')": ["@__file__", "=..", "=a.sh"],
    "Path(__file__).with_suffix('.sh')": ["@__file__", "~.sh"],
    "Path(ROOT, 'a', 'b')": ["@ROOT", "=a", "=b"],
    "ROOT.joinpath('a', 'b')": ["@ROOT", "=a", "=b"],
    "(ROOT / 'docs').glob('*.md')": ["@ROOT", "=docs", "=*.md"],
    "ROOT.rglob('*.py')": ["@ROOT", "=**", "=*.py"],
    "ROOT / f'Pulumi.{stack}.yaml'": ["@ROOT", "=Pulumi.*.yaml"],
    "f'{ROOT}/images/{name}'": ["@ROOT", "=images/*"],
    "ROOT / name_of(each)": ["@ROOT", "?"],
    "files('soperator_pulumi.platform') / 'keys'": ["@soperator_pulumi.platform.__file__", "=..", "=keys"],
}


@pytest.mark.parametrize("code", PATHS)
def test_a_path_is_known_by_its_parts(code: str) -> None:
    assert path_of(ast.parse(code, mode="eval").body) == PATHS[code]


@pytest.mark.parametrize("code", ["1", "[ROOT]", "read(ROOT)", "ROOT.read_text()", "name_of(each) / 'a'"])
def test_other_expressions_are_no_paths(code: str) -> None:
    assert path_of(ast.parse(code, mode="eval").body) is None


def test_a_name_has_its_attributes() -> None:
    assert dotted(ast.parse("a.b.c", mode="eval").body) == "a.b.c"
    assert dotted(ast.parse("a().b", mode="eval").body) == ""
