"""Facts about all Python files of a tree, cached for files that have not changed."""

import hashlib
from collections.abc import Iterable
from contextlib import nullcontext
from functools import cache
from pathlib import Path, PurePosixPath

from pydantic import TypeAdapter

from soperator_pulumi.whole_files import write_whole
from tools.affected import path_expressions, python_facts
from tools.affected.python_facts import PythonFacts, facts_of
from tools.console import UserError, step

_MANY = 100
"""Number of files that take a second to read."""

_STORED = TypeAdapter(dict[str, PythonFacts])


def facts_of_files(files: Iterable[str], *, root: Path, folder: Path) -> dict[str, PythonFacts]:
    """Return the facts about every Python file, by path.

    Args:
        files: Paths from the root. Scripts are known by their first line; files that are not Python have no facts.
        root: Folder of the source tree.
        folder: Folder of the cache, made if missing.

    Raises:
        UserError: A file named `*.py` is not Python.
    """
    file = folder / "facts.json"
    texts = {name: text for name in files if (text := _python(root / name)) is not None}
    tagged = {name: f"{_version()}{_has_parts(name)}{text}" for name, text in texts.items()}
    keys = {name: hashlib.sha256(text.encode()).hexdigest() for name, text in tagged.items()}
    known = _load(file)
    if new := [name for name in texts if keys[name] not in known]:
        with step(f"Reading {len(new)} Python files") if len(new) >= _MANY else nullcontext():
            try:
                for name in new:
                    known[keys[name]] = _read(name, texts[name])
            finally:  # if one of the files is not Python, the next run does not read the others again
                _save(file, {key: known[key] for key in keys.values() if key in known})
    return {name: known[key] for name, key in keys.items()}


def _python(file: Path) -> str | None:
    """Return the text of a Python file; None for other files, and for missing ones."""
    if file.suffix not in {".py", ""} or not file.is_file():
        return None
    content = file.read_bytes()
    is_script = content.startswith(b"#!") and b"python" in content.splitlines()[0]
    return content.decode() if file.suffix == ".py" or is_script else None


@cache
def _version() -> str:
    """Return a hash of the code that reads facts, as other code may read other facts from the same file."""
    modules = (path_expressions, python_facts)
    return "".join(Path(str(module.__file__)).read_text(encoding="utf-8") for module in modules)


def _has_parts(name: str) -> bool:
    return PurePosixPath(name).name == "conftest.py"


def _read(name: str, text: str) -> PythonFacts:
    try:
        return facts_of(text, by_definition=_has_parts(name))
    except SyntaxError as error:
        raise UserError(f"{name}:{error.lineno}: {error.msg}. Fix it first: its imports are not known.") from error


def _load(file: Path) -> dict[str, PythonFacts]:
    try:
        return _STORED.validate_json(file.read_bytes())
    except (OSError, ValueError):  # none yet, or that of other code
        return {}


def _save(file: Path, content: dict[str, PythonFacts]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    write_whole(file, _STORED.dump_json(content))  # another run reads all of it or nothing
