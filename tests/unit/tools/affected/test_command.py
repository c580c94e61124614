"""`make affected` prints what it runs, what it leaves out, and why it runs everything."""

import subprocess
from pathlib import Path

import pytest

from tools import paths
from tools.affected.__main__ import main, tiers_of
from tools.console import UserError

TREE = {
    "pyproject.toml": '[tool.pytest.ini_options]\npythonpath = ["."]\n',
    "product.py": "def f(): return 1\n",
    "tests/unit/test_product.py": "from product import f\ndef test_f(): assert f() == 1\n",
    "tests/unit/test_other.py": "def test_it(): assert False, 'this one does not run'\n",
    "tests/rendered/test_all.py": "from product import f\ndef test_f(): assert f() < 3\n",
}


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with nothing changed."""
    for name, text in TREE.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    git = ("git", "-c", "user.name=a", "-c", "user.email=a@example.com", "-C", str(tmp_path))
    for words in ("init -qb main", "add .", "commit -qm all"):
        subprocess.run([*git, *words.split()], check=True)
    (tmp_path / ".git" / "info" / "exclude").write_text("__pycache__\n.pytest_cache\ncache\n")
    monkeypatch.setattr(paths, "ROOT", tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


def affected(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr("sys.argv", ["affected", *arguments])
    return main()


def test_without_a_change_nothing_runs(
    root: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    assert affected(monkeypatch) == 0
    out, err = capfd.readouterr()
    assert (out, err) == ("", "Nothing differs from the merge base with main: there is nothing to run.\n")


def test_the_list_has_the_tests_of_each_run_and_those_left_out(
    root: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (root / "product.py").write_text("def f(): return 2\n")
    assert affected(monkeypatch, "--list") == 0
    out, err = capfd.readouterr()
    assert out == (
        "nearest:\n  tests/unit/test_product.py\n"
        "rendered:\n  tests/rendered/test_all.py\n"
        "left out of unit:\n  tests/unit/test_other.py\n"
    )
    assert "1 file changed since the merge base with main.\n" in err
    assert "unit:     1 file of tests selected, 1 left out\n" in err


def test_a_change_that_breaks_a_test_fails_before_the_slower_tiers(
    root: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (root / "product.py").write_text("def f(): return 2\n")
    assert affected(monkeypatch) == 1
    out, err = capfd.readouterr()
    assert "1 failed" in out
    assert "does not run" not in out
    assert "==> nearest: 1 file\n" in err
    assert "==> rendered" not in err


def test_the_tiers_are_those_that_are_asked_for(
    root: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (root / "product.py").write_text("def f(): return 2\n")
    affected(monkeypatch, "--tiers", "rendered", "--list")
    assert capfd.readouterr().out.startswith("rendered:\n  tests/rendered/test_all.py\nleft out")


def test_the_reason_to_run_everything_is_printed(
    root: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (root / "unknown.txt").touch()
    affected(monkeypatch, "--list")
    out, err = capfd.readouterr()
    assert "All tests are selected: unknown.txt is used by no test, as far as imports and paths show.\n" in err
    assert "left out" not in out


def test_a_tier_that_there_is_not_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(
        UserError, match=r"TIERS=unit,soak: soak is not a tier. Name some of unit, rendered, engine, clus"
    ):
        tiers_of("unit,soak")


def test_tiers_stand_in_one_text() -> None:
    assert tiers_of("unit rendered") == tiers_of("unit,rendered") == ["unit", "rendered"]
    assert tiers_of("") == ["unit", "rendered", "engine", "cluster"]
