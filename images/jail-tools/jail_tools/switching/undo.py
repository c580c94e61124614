"""Restores a tree after a killed run: replaced files are kept until the switch is complete.

First every file that will be replaced gets a second name in meta/<tree>/undo, then the plan is written, and only then
the tree is touched. While the plan exists, the tree can be restored; without it there is nothing to do.
"""

import json
import os
import shutil
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from jail_tools import claim, files, resolve_beneath
from jail_tools.files import split
from jail_tools.layout import Tree
from jail_tools.progress import log


class Undo:
    """The undo plan of one tree."""

    def __init__(self, tree: Tree) -> None:
        self._folder = tree.meta / "undo"
        self._plan = self._folder / "plan.json"

    @property
    def pending(self) -> bool:
        """True if a run began to change the tree and did not finish."""
        return self._plan.exists()

    def begin(self, root: int, paths: Iterable[str]) -> None:
        """Keep the files at these paths. Parents come before their content."""
        self._clear()
        self._folder.mkdir(mode=0o700)
        plan: list[dict[str, object]] = []
        with files.opened(self._folder, files.FOLDER) as aside:
            for number, path in enumerate(dict.fromkeys(paths)):
                was = resolve_beneath.lookup(root, path)
                if was is None:
                    plan.append({"path": path, "was": "nothing"})
                elif stat.S_ISDIR(was.st_mode):
                    mode = stat.S_IMODE(was.st_mode)
                    plan.append({"path": path, "was": "directory", "mode": mode, "uid": was.st_uid, "gid": was.st_gid})
                else:
                    parent, name = split(path)
                    with resolve_beneath.directory(root, parent) as at:
                        os.link(name, str(number), src_dir_fd=at, dst_dir_fd=aside, follow_symlinks=False)
                    plan.append({"path": path, "was": "file", "aside": str(number)})
        files.write_atomically(self._plan, [json.dumps(plan).encode()])

    def forget(self) -> None:
        """Remove the plan and the kept files, after a complete switch or one that never began."""
        self._plan.unlink(missing_ok=True)
        self._clear()

    def roll_back(self, root: int) -> None:
        """Restore the tree. It can be killed and run again."""
        with files.opened(self._folder, files.FOLDER) as aside:
            for step in reversed(json.loads(self._plan.read_text())):
                parent, name = split(step["path"])
                with resolve_beneath.maybe_directory(root, parent) as at:
                    if at is not None:
                        _undo(step, at, name, aside)
        self.forget()

    def _clear(self) -> None:
        with suppress(FileNotFoundError):
            shutil.rmtree(self._folder)


def _undo(step: dict[str, object], at: int, name: str, aside: int) -> None:
    resolve_beneath.discard(at, resolve_beneath.name_of_new(name))
    if step["was"] == "directory":
        os.chown(name, int(str(step["uid"])), int(str(step["gid"])), dir_fd=at, follow_symlinks=False)
        os.chmod(name, int(str(step["mode"])), dir_fd=at)
    elif step["was"] == "file":
        with suppress(FileNotFoundError):
            os.rename(str(step["aside"]), name, src_dir_fd=aside, dst_dir_fd=at)
    else:
        resolve_beneath.discard(at, name)


def repair(jail: Path) -> None:
    """Restore a tree that a killed run left half changed, or forget the plan if the switch was complete."""
    active = claim.active_tree(jail)
    for tree in claim.all_trees(jail):
        undo = Undo(tree)
        if tree == active or not undo.pending:
            undo.forget()
            continue
        log(f"switch: restores tree {tree.name} as it was before a switch that did not end")
        if tree.root.is_dir():
            with resolve_beneath.directory(str(tree.root)) as root:
                undo.roll_back(root)
