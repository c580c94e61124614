"""Kernel of the lab: place in the cache, and machines that can't build it."""

import shutil
from pathlib import Path

import pytest

from tools.console import UserError
from tools.lab import uml_kernel


def test_another_setting_gives_another_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = uml_kernel.folder()
    changed = tmp_path / "kernel.config"
    changed.write_text(uml_kernel.CONFIG.read_text() + "CONFIG_TUN=n\n")
    monkeypatch.setattr(uml_kernel, "CONFIG", changed)
    assert uml_kernel.folder() != before


def test_a_kernel_in_the_cache_is_not_built_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(uml_kernel, "_build", lambda: pytest.fail("built again"))
    uml_kernel.folder().mkdir(parents=True)
    (uml_kernel.folder() / "linux").touch()
    assert uml_kernel.kernel() == uml_kernel.folder() / "linux"


def test_all_tools_and_room_that_a_machine_lacks_are_reported_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(uml_kernel, "_TREE_BYTES", shutil.disk_usage(tmp_path).total * 2)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError) as raised:
        uml_kernel.kernel()
    for part in ("there is no gcc: install the package gcc", "there is no bc", "make room, or set XDG_CACHE_HOME"):
        assert part in str(raised.value)


def test_the_progress_of_a_build_is_the_files_that_it_compiled() -> None:
    lines = [
        "  HOSTCC  scripts/kallsyms",
        "  CC      init/main.o",
        "  AS      lib/hweight.o",
        "  AR      init/built-in.a",
    ]
    assert uml_kernel.compiled(lines) == "2 files compiled by this run"
