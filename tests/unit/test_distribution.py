"""Distributions, and their installation: the package in an environment with nothing of this tree."""

import ast
import importlib.metadata
import json
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable
from email.message import Message
from email.parser import Parser
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import soperator_pulumi
from tests import installed
from tests.examples import PYTHON, Example
from tests.installed import Environment
from tests.strategies import a_cluster
from tools import dist, paths

IMPORT_EVERYTHING = """
import importlib, json, pkgutil, soperator_pulumi
missing = {}
for module in pkgutil.walk_packages(soperator_pulumi.__path__, "soperator_pulumi."):
    try:
        importlib.import_module(module.name)
    except ModuleNotFoundError as error:
        missing[module.name] = error.name
print(json.dumps(missing))
"""

PARTS_OF_AN_INTERFACE = {
    "grpcio": "pulumi",
    "protobuf": "pulumi",
    "pydantic-core": "pydantic",
    "urllib3": "kubernetes",
    "websocket-client": "kubernetes",
}
"""Distributions whose types a declared one hands out or raises: it decides their versions."""

PROGRAM = """
from soperator_pulumi import SlurmCluster

SlurmCluster("hpc", {})
"""
PROGRAMS = {
    "right": 'node_sets=[{"name": "cpu", "cpus": 4, "memory_gib": 16, "replicas": 2}]',
    "misspelt_argument": 'node_set=[{"name": "cpu", "cpus": 4, "memory_gib": 16}]',
    "misspelt_key": 'node_sets=[{"name": "cpu", "cpus": 4, "memory_gib": 16, "replica": 2}]',
    "wrong_type": 'node_sets=[{"name": "cpu", "cpus": "4", "memory_gib": 16}]',
}
"""Programs of someone who has installed the package: the arguments after the component's name."""

MYPY_SETTINGS = """
[mypy]
follow_imports = skip
[mypy-soperator_pulumi.*]
follow_imports = silent
[mypy-pytest]
ignore_missing_imports = true
"""
"""The SDK of Kubernetes is large, and none of it is asked about; pytest is not installed next to the package."""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return dist.build(tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module")
def wheel(built: list[Path]) -> zipfile.ZipFile:
    (file,) = (path for path in built if path.suffix == ".whl")
    return zipfile.ZipFile(file)


@pytest.fixture(scope="module")
def metadata(wheel: zipfile.ZipFile) -> Message:
    (name,) = (text for text in wheel.namelist() if text.endswith("/METADATA"))
    return Parser().parsestr(wheel.read(name).decode())


@pytest.fixture(scope="module")
def sdist(built: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The unpacked source distribution."""
    (file,) = (path for path in built if path.name.endswith(".tar.gz"))
    folder = tmp_path_factory.mktemp("sdist")
    with tarfile.open(file) as archive:
        archive.extractall(folder, filter="data")
    return folder / file.name.removesuffix(".tar.gz")


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    return installed.environment(tmp_path_factory.mktemp("installed"))


def known_to_git(*folders: str) -> set[str]:
    command = ["git", "-C", str(paths.ROOT), "ls-files", "--cached", "--others", "--exclude-standard", "--", *folders]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    return {name for name in listed if (paths.ROOT / name).is_file()}


def test_the_wheel_holds_the_package_and_nothing_else(wheel: zipfile.ZipFile) -> None:
    files = {name for name in wheel.namelist() if ".dist-info/" not in name}
    assert files == known_to_git("soperator_pulumi")
    assert {"soperator_pulumi/py.typed", "soperator_pulumi/render/job_submit.lua"} <= files


def test_the_source_distribution_holds_the_whole_tree(sdist: Path) -> None:
    files = {str(path.relative_to(sdist)) for path in sdist.rglob("*") if path.is_file()}
    assert files - {"PKG-INFO"} == known_to_git()


def test_the_wheel_is_built_from_the_source_distribution_alone(
    sdist: Path, wheel: zipfile.ZipFile, tmp_path: Path
) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=sdist, check=True, capture_output=True)
    (file,) = tmp_path.iterdir()
    with zipfile.ZipFile(file) as again:
        assert [(zip_info.filename, zip_info.CRC) for zip_info in again.infolist()] == [
            (zip_info.filename, zip_info.CRC) for zip_info in wheel.infolist()
        ]


def test_the_metadata_is_complete(metadata: Message) -> None:
    assert metadata["Name"] == "soperator-pulumi"
    assert metadata["Version"] == soperator_pulumi.__version__
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["License-File"] == "LICENSE"
    assert metadata["Requires-Python"] == ">=3.11"
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert "slurm" in metadata["Keywords"].split(",")
    assert "Typing :: Typed" in metadata.get_all("Classifier", [])
    assert [url.partition(", ")[2][:8] for url in metadata.get_all("Project-URL", [])] == ["https://", "https://"]


def test_the_dependencies_are_what_the_package_imports(metadata: Message) -> None:
    """One that nothing imports would be installed for nothing; one that is not declared may be gone tomorrow."""
    requirements = [*map(Requirement, metadata.get_all("Requires-Dist", []))]
    declared = {canonicalize_name(requirement.name) for requirement in requirements if requirement.marker is None}
    optional = {canonicalize_name(requirement.name) for requirement in requirements if requirement.marker is not None}
    imported = imported_distributions()
    assert declared - imported == set()
    assert imported - declared - optional == set(PARTS_OF_AN_INTERFACE)
    for name, owner in PARTS_OF_AN_INTERFACE.items():
        assert name in {
            canonicalize_name(Requirement(require).name) for require in importlib.metadata.requires(owner) or ()
        }


def imported_distributions() -> set[str]:
    """Return the distributions of all modules that the package's own import by name."""
    providers = importlib.metadata.packages_distributions()
    files = (paths.ROOT / "soperator_pulumi").rglob("*.py")
    statements = [node for file in files for node in ast.walk(ast.parse(file.read_text()))]
    plain = {alias.name for statement in statements if isinstance(statement, ast.Import) for alias in statement.names}
    names = plain | {statement.module or "" for statement in statements if isinstance(statement, ast.ImportFrom)}
    tops = {name.partition(".")[0] for name in names} - sys.stdlib_module_names - {"soperator_pulumi", "google"}
    found = {canonicalize_name(name) for top in tops for name in providers[top]}
    return found | ({"protobuf"} if any(name.startswith("google.protobuf") for name in names) else set())


def test_an_installed_package_is_imported_from_its_environment(environment: Environment) -> None:
    code = "import sys, json, soperator_pulumi as s; print(json.dumps([s.__version__, s.__file__, sys.path]))"
    version, file, path = json.loads(environment.run("-c", code).stdout)
    assert version == soperator_pulumi.__version__
    assert Path(file).is_relative_to(environment.site_packages)
    assert not [item for item in path if Path(item).is_relative_to(paths.ROOT)]


def test_the_wheel_has_the_command_which_renders_a_stack_file(environment: Environment, tmp_path: Path) -> None:
    version = environment.run("--version", program="soperator")
    assert version.stdout == f"soperator {soperator_pulumi.__version__}\n"
    (tmp_path / "Pulumi.yaml").write_text("name: soperator\nruntime: python\n")
    (tmp_path / "Pulumi.prod.yaml").write_text(json.dumps({"config": {"soperator:cluster": a_cluster(name="hpc")}}))
    done = environment.run("render", "Pulumi.prod.yaml", cwd=tmp_path, program="soperator")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "manifests" / "prod" / "001-namespace-hpc.yaml").exists()


def test_importing_the_package_loads_neither_pulumi_nor_pydantic(environment: Environment) -> None:
    code = "import sys, json, soperator_pulumi; print(json.dumps([*sys.modules]))"
    modules = json.loads(environment.run("-c", code).stdout)
    ours = {name for name in modules if name.partition(".")[0] == "soperator_pulumi"}
    assert ours == {"soperator_pulumi"}
    assert not {"pulumi", "pulumi_kubernetes", "pydantic", "kubernetes", "yaml"} & {*modules}


def test_the_server_of_dynamic_resources_loads_nothing_that_only_a_program_needs(environment: Environment) -> None:
    code = "import sys, json, soperator_pulumi.lifecycle; print(json.dumps([*sys.modules]))"
    modules = {*json.loads(environment.run("-c", code).stdout)}
    assert "pulumi.dynamic" in modules, "every `up` starts this server, and waits for what it imports"
    assert not {"pulumi_kubernetes", "pulumi_random", "kubernetes", "jinja2"} & modules
    assert not {f"soperator_pulumi.{part}" for part in ("cluster", "platform", "plugin", "stack", "cli")} & modules
    assert "soperator_pulumi.spec.cluster" not in modules


def test_every_module_works_with_the_declared_dependencies_or_names_an_extra(environment: Environment) -> None:
    done = environment.run("-W", "error", "-c", IMPORT_EVERYTHING)
    assert done.returncode == 0, done.stderr
    providers = importlib.metadata.packages_distributions()
    missing = {canonicalize_name(name) for top in set(json.loads(done.stdout).values()) for name in providers[top]}
    assert missing <= {"pulumi-policy"}


@pytest.fixture(scope="module")
def mypy(environment: Environment, tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], list[str]]:
    """Check a folder of someone who has installed the package, and return what mypy finds."""
    made = tmp_path_factory.mktemp("mypy")
    (made / "mypy.ini").write_text(MYPY_SETTINGS)
    settings = ["--config-file", str(made / "mypy.ini"), "--cache-dir", str(made / "cache")]

    python = ["--python-executable", str(environment.python)]

    def check(folder: Path) -> list[str]:
        command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", *settings, *python, "."]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        assert not done.stderr
        return [line for line in done.stdout.splitlines() if ": error:" in line]

    return check


@pytest.fixture(scope="module")
def type_checked(mypy: Callable[[Path], list[str]], tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """mypy's findings, by program."""
    folder = tmp_path_factory.mktemp("typed")
    for name, arguments in PROGRAMS.items():
        (folder / f"{name}.py").write_text(PROGRAM.format(arguments))
    lines = mypy(folder)
    return {name: [line for line in lines if line.startswith(f"{name}.py:")] for name in PROGRAMS}


def test_a_type_checker_accepts_a_right_program(type_checked: dict[str, list[str]]) -> None:
    assert type_checked["right"] == []


@pytest.mark.parametrize("which", PYTHON, ids=lambda item: item.name)
def test_a_type_checker_accepts_an_example(mypy: Callable[[Path], list[str]], which: Example) -> None:
    assert mypy(which.folder) == []


def test_a_type_checker_finds_a_misspelt_argument(type_checked: dict[str, list[str]]) -> None:
    (error,) = type_checked["misspelt_argument"]
    assert 'Unexpected keyword argument "node_set" for "SlurmCluster"; did you mean "node_sets"?' in error


def test_a_type_checker_finds_a_misspelt_key_of_a_description(type_checked: dict[str, list[str]]) -> None:
    (error,) = type_checked["misspelt_key"]
    assert 'Extra key "replica" for TypedDict "NodeSetArgs"' in error


def test_a_type_checker_finds_a_value_of_another_type(type_checked: dict[str, list[str]]) -> None:
    (error,) = type_checked["wrong_type"]
    assert 'TypedDict item "cpus" has type "int"' in error
