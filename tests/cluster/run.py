"""Runs an operation on a test's stack in a process of its own, so that tests can kill and time it."""

import json
import sys
from pathlib import Path

from tools import console, engine, paths


def main() -> None:
    """Do what the argument, JSON, says: `up`, unless it names another operation."""
    given = json.loads(sys.argv[1])
    project = Path(given.get("project", paths.ROOT))
    deployer, _ = engine.choose(
        project, "test", Path(given["state"]), config=given["config"], environment=given["environment"]
    )
    getattr(deployer, given.get("operation", "up"))()


if __name__ == "__main__":
    sys.exit(console.run(main))
