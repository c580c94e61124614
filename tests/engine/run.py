"""Runs an operation of an engine in a process of its own, so that tests can kill it."""

import json
import sys
from pathlib import Path

from tests.engine.engines import ENGINES, PROGRAM
from tools import console
from tools.engine import Target


def main() -> None:
    """Run what the argument, JSON, says."""
    given = json.loads(sys.argv[1])
    engine, operation = given.pop("engine"), given.pop("operation")
    project = Path(given.pop("project", PROGRAM))
    target = Target(project=project, **{**given, "state": Path(given["state"])})
    getattr(ENGINES[engine](target, console.say), operation)()


if __name__ == "__main__":
    sys.exit(console.run(main))
