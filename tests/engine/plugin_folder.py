"""A folder of the plugin that Pulumi starts in the environment of the tests, as `pulumi install` would prepare one."""

import json
import shutil
import sys
from pathlib import Path

from tools import paths

COMPONENTS = paths.ROOT / "components"
ENVIRONMENT = {"PYTHONPATH": str(paths.ROOT)}
"""Variables by which the plugin finds the package of this source tree."""


def prepare(folder: Path) -> Path:
    """Make the folder of a plugin, and return it."""
    folder.mkdir(parents=True)
    shutil.copy(COMPONENTS / "__main__.py", folder)
    options = {"toolchain": "pip", "virtualenv": str(Path(sys.executable).parent.parent)}
    described = {"name": "soperator-pulumi", "runtime": {"name": "python", "options": options}}
    (folder / "PulumiPlugin.yaml").write_text(json.dumps(described))
    return folder
