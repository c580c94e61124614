"""A cluster of a program that may be written in several languages, one after the other."""

import json
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

from soperator_pulumi.lifecycle.resource import PACKAGE
from soperator_pulumi.plugin.cluster_types import CLUSTER, INPUTS
from soperator_pulumi.plugin.package_schema import schema
from soperator_pulumi.plugin.property_types import ListOf, ObjectType, OneOf, PropertyType
from tests import warm_python
from tests.cluster.slurm import Slurm
from tests.engine import plugin_folder
from tests.engine.engines import ENGINES
from tools import console, locks, paths
from tools.engine import Deployer, Target

LOGIN_HOST_KEY = "login_host_key"

_PYTHON = """\
import json
from pathlib import Path

import pulumi

from soperator_pulumi import SlurmCluster

given = json.loads(Path(__file__).with_name("cluster.json").read_text())
cluster = SlurmCluster("hpc", given["python"])
pulumi.export("login_host_key", cluster.login.host_public_key)
"""
_REMOTE = """\
import json
from pathlib import Path

import pulumi

given = json.loads(Path(__file__).with_name("cluster.json").read_text())
inputs = {**given["other"], "loginHostPublicKey": None}
cluster = pulumi.ComponentResource("soperator-pulumi:index:SlurmCluster", "hpc", inputs, remote=True)
pulumi.export("login_host_key", cluster.loginHostPublicKey)
"""
_TYPESCRIPT = """\
import * as fs from "fs";

import { SlurmCluster } from "./sdk/nodejs";

const cluster = new SlurmCluster("hpc", JSON.parse(fs.readFileSync("cluster.json", "utf8")).other);
export const login_host_key = cluster.loginHostPublicKey;
"""

_NODE_MODULES = {"@pulumi/pulumi": "3.248.0", "@types/node": "20.19.43", "typescript": "5.9.3"}
_NPM_SECONDS = 300


class Language(StrEnum):
    """Language of a program."""

    PYTHON = "Python"
    REMOTE = "Python that asks the plugin"
    """As a program in any other language does. The local engine runs Python alone."""
    YAML = "YAML"
    TYPESCRIPT = "TypeScript"


OF_THE_CLI = [
    Language.PYTHON,
    Language.YAML,
    *([Language.TYPESCRIPT] if shutil.which("npm") and shutil.which("pulumi-language-nodejs") else []),
]
"""Languages that the CLI runs on this machine."""


def in_other_language(value: Any, type_: PropertyType = INPUTS) -> Any:
    """Return a description as a program in another language has it."""
    match type_:
        case ObjectType() if isinstance(value, Mapping):
            known = {property_.name: property_ for property_ in type_.properties}
            return {known[name].key: in_other_language(part, known[name].type) for name, part in value.items()}
        case ListOf():
            return [in_other_language(part, type_.items) for part in value]
        case OneOf() if isinstance(value, Mapping | list):
            kind = ListOf if isinstance(value, list) else ObjectType
            return in_other_language(value, next(item for item in type_.types if isinstance(item, kind)))
        case _:
            return value


@dataclass
class ProgramInLanguages(Slurm):
    """A cluster of a program that is written in Python first, and then perhaps in another language."""

    runs_on: str = "local"
    language: Language = field(default=Language.PYTHON, kw_only=True)

    def deployer(self, environment: Mapping[str, str] | None = None, *, warm: bool = True) -> Deployer:
        target = Target(
            project=self.written(),
            stack="test",
            state=self._state,
            config={"languages:described": "in the program"},
            environment={**self._environment, **plugin_folder.ENVIRONMENT, **(environment or {})},
            python=warm_python.executable() if warm else None,
        )
        return ENGINES[self.runs_on](target, console.say)

    def written(self) -> Path:
        """Write the program, and return its folder."""
        folder, components = self.folder / "program", self.folder / "components"
        if not folder.exists():
            folder.mkdir()
            plugin_folder.prepare(components)
        described = {"python": self._completed(), "other": in_other_language(self._completed())}
        (folder / "cluster.json").write_text(json.dumps(described))
        project: dict[str, Any] = {"name": "languages", "runtime": "python", "packages": {PACKAGE: str(components)}}
        match self.language:
            case Language.PYTHON:
                (folder / "__main__.py").write_text(_PYTHON)
            case Language.REMOTE:
                (folder / "__main__.py").write_text(_REMOTE)
            case Language.YAML:
                resource = {"type": CLUSTER.token, "properties": described["other"]}
                outputs = {LOGIN_HOST_KEY: "${hpc.loginHostPublicKey}"}
                project |= {"runtime": "yaml", "resources": {"hpc": resource}, "outputs": outputs}
            case Language.TYPESCRIPT:
                (folder / "index.ts").write_text(_TYPESCRIPT)
                _add_sdk(folder)
                project |= {"runtime": "nodejs", "main": "index.ts"}
        (folder / "Pulumi.yaml").write_text(json.dumps(project))
        return folder


def _add_sdk(folder: Path) -> None:
    """Add to a program in TypeScript the packages that it imports."""
    if (folder / "sdk").exists():
        return
    (folder / "node_modules").symlink_to(_node_modules())
    (folder / "schema.json").write_text(json.dumps(schema()))
    command = ["pulumi", "package", "gen-sdk", "schema.json", "--language", "nodejs", "--out", "sdk", "--local"]
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)


def _node_modules() -> Path:
    """Return the folder of the packages from npm, installed once and kept in the cache."""
    versions = "-".join(_NODE_MODULES.values())
    folder = paths.cache_dir() / "node-modules" / versions
    with locks.held(folder.with_suffix(".lock"), "installing packages of TypeScript", wait_seconds=_NPM_SECONDS):
        if not folder.exists():
            made = folder.with_suffix(".new")
            shutil.rmtree(made, ignore_errors=True)
            made.mkdir(parents=True)
            (made / "package.json").write_text(json.dumps({"dependencies": _NODE_MODULES}))
            command = ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts"]
            subprocess.run(command, cwd=made, check=True, stdout=subprocess.DEVNULL, timeout=_NPM_SECONDS)
            made.rename(folder)
    return folder / "node_modules"
