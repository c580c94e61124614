"""docs/gitops.md and examples/gitops: commands and programs run, and the Stack is one that the operator takes."""

import json
import os
import re
import runpy
import shutil
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from soperator_pulumi.testing import deploy
from tools import paths

PAGE = (paths.ROOT / "docs" / "gitops.md").read_text()
EXAMPLE = paths.ROOT / "examples" / "gitops"
SCHEMA = json.loads((Path(__file__).parent / "data" / "pulumi-stack-v1.schema.json").read_text())
YOUR_CLUSTER = (paths.ROOT / "docs" / "your-cluster.md").read_text()


def objects() -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((EXAMPLE / "stack.yaml").read_text()))


def stack() -> dict[str, Any]:
    (found,) = [object_ for object_ in objects() if object_["kind"] == "Stack"]
    return found


def test_the_operator_knows_every_field_of_the_stack() -> None:
    assert stack()["apiVersion"] == "pulumi.com/v1"
    jsonschema.validate(stack()["spec"], SCHEMA)


@pytest.mark.parametrize(
    "change",
    [{"reppoDir": "x"}, {"stack": 1}, {"workspaceReclaimPolicy": "Keep"}, {"workspaceTemplate": {"spec": {"a": 1}}}],
)
def test_a_field_that_the_operator_does_not_know_would_be_found(change: dict[str, Any]) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**stack()["spec"], **change}, SCHEMA)


def test_the_stack_names_what_is_there() -> None:
    spec, names = stack()["spec"], {(object_["kind"], object_["metadata"]["name"]) for object_ in objects()}

    assert paths.ROOT / spec["repoDir"] == EXAMPLE
    assert (EXAMPLE / "Pulumi.yaml").exists()
    assert (EXAMPLE / f"Pulumi.{spec['stack']}.yaml").exists()
    assert ("ServiceAccount", spec["serviceAccountName"]) in names
    for binding in [object_ for object_ in objects() if object_["kind"] == "ClusterRoleBinding"]:
        (subject,) = binding["subjects"]
        assert (subject["kind"], subject["name"]) in names
        assert subject["namespace"] == stack()["metadata"]["namespace"]
    assert {env_ref["secret"]["name"] for env_ref in spec["envRefs"].values()} == {"hpc-pulumi"}
    assert all(env_ref["secret"]["key"] == name for name, env_ref in spec["envRefs"].items())


def test_the_example_deploys_a_cluster_that_waits_for_jobs() -> None:
    config = yaml.safe_load((EXAMPLE / "Pulumi.dev.yaml").read_text())["config"]
    texts = {key: json.dumps(value) for key, value in config.items()}
    deployment = deploy(lambda: runpy.run_path(str(EXAMPLE), run_name="__main__"), config=texts)

    assert deployment.one("hpc-cpu", "StatefulSet").inputs["spec"]["replicas"] == 4
    assert deployment.one("hpc-cpu-drain").inputs["policy"]["on_timeout"] == "wait"


def test_the_example_destroys_nothing_with_its_stack_and_gives_jobs_a_day_to_end() -> None:
    spec = stack()["spec"]

    assert spec["destroyOnFinalize"] is False
    assert spec["workspaceTemplate"]["spec"]["podTemplate"]["spec"]["terminationGracePeriodSeconds"] == 24 * 3600


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of the tools, with a stack `prod`: the commands find their project next to them."""
    shutil.copytree(paths.ROOT / "tools", tmp_path / "tools", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(
        paths.ROOT / "stacks", tmp_path / "stacks", ignore=shutil.ignore_patterns("__pycache__", "Pulumi.*")
    )
    for name in ("Makefile", "Pulumi.yaml", "__main__.py", "requirements.lock"):
        shutil.copy(paths.ROOT / name, tmp_path / name)
    for name in ("soperator_pulumi", ".venv"):
        (tmp_path / name).symlink_to(paths.ROOT / name)
    (example,) = re.findall(r"```yaml\n(.*?)```", YOUR_CLUSTER, re.DOTALL)
    (tmp_path / "stacks" / "Pulumi.prod.yaml").write_text(example)
    return tmp_path


def test_the_commands_render_the_stack(checkout: Path) -> None:
    blocks = "".join(re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL))
    assert re.findall(r"(?m)^(\w+)", blocks) == ["make", "make"]

    subprocess.run(
        ["bash", "-euc", blocks.replace("make ", "make -o .venv/.installed ")],  # the environment is there
        cwd=checkout,
        env={**os.environ, "PYTHONPATH": "", "PYTHONDONTWRITEBYTECODE": "1"},
        check=True,
        capture_output=True,
    )

    prod, review = checkout / "manifests" / "prod", checkout / "manifests" / "for-review"
    assert len([*prod.glob("*.yaml")]) > 20
    assert {path.name: path.read_bytes() for path in prod.iterdir()} == {
        path.name: path.read_bytes() for path in review.iterdir()
    }


def test_the_program_of_the_page_writes_manifests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (program,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    monkeypatch.chdir(tmp_path)

    exec(program, {})  # noqa: S102 - it is the page that is tried

    assert (tmp_path / "manifests" / "001-namespace-hpc.yaml").exists()
