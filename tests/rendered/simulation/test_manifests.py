"""Manifests of a program: its objects as Pulumi would apply them, and nothing of the mocks that it runs against."""

import dataclasses
import random
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pulumi
import pulumi_kubernetes as kubernetes
import pytest
import yaml

from soperator_pulumi import Platform, SlurmCluster, testing
from soperator_pulumi.errors import ManifestError
from soperator_pulumi.lifecycle.resource import ServedBy
from soperator_pulumi.render.passwords import unquoted_password
from soperator_pulumi.simulation.manifests_page import _ACTS, ManifestsPage
from soperator_pulumi.simulation.secret_commands import SecretNote
from soperator_pulumi.testing import Deployment, Manifests, deploy, manifests_of
from tools import paths

PAGE = (paths.ROOT / "docs" / "your-cluster.md").read_text()
(STACK,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
CLUSTER: dict[str, Any] = yaml.safe_load(STACK)["config"]["soperator:cluster"]


def deployed(served_by: ServedBy = ServedBy.PROGRAM, **changes: Any) -> Deployment:
    """Deploy the cluster of docs/your-cluster.md with some changes."""
    config = {"soperator:served_by": str(served_by)}
    cluster = {**CLUSTER, **changes}
    return deploy(lambda: SlurmCluster("hpc", cluster), project="soperator", stack_name="prod", config=config)


@pytest.fixture(scope="module")
def deployment() -> Deployment:
    return deployed()


@pytest.fixture(scope="module")
def rendered(deployment: Deployment) -> Manifests:
    return manifests_of(deployment)


@pytest.fixture(scope="module")
def files(rendered: Manifests) -> dict[str, str]:
    return rendered.files("prod")


def bodies(files: dict[str, str]) -> list[dict[str, Any]]:
    return [yaml.safe_load(text) for name, text in files.items() if name.endswith(".yaml")]


def body(files: dict[str, str], kind: str, name: str) -> dict[str, Any]:
    (text,) = [text for file, text in files.items() if file.endswith(f"-{kind.lower()}-{name}.yaml")]
    found: dict[str, Any] = yaml.safe_load(text)
    return found


def test_every_object_that_pulumi_applies_is_there_with_its_configuration_files(
    deployment: Deployment, files: dict[str, str]
) -> None:
    applied = {
        (resource.inputs["kind"], resource.inputs["metadata"]["name"])
        for resource in deployment.recorded
        if resource.type.startswith("kubernetes:")
    }
    config_maps = {("ConfigMap", resource.inputs["name"]) for resource in deployment.resources("ConfigFiles")}
    found = {(entry["kind"], entry["metadata"]["name"]) for entry in bodies(files)}

    assert len(config_maps) == 5
    assert found == (applied | config_maps) - {
        *(("Secret", name) for name in ("database-password", "munge-key", "ssh-host-key")),
        ("ConfigMap", "state-in-use"),  # with it, slurmctld would not start on a new volume
    }
    assert body(files, "ConfigMap", "slurm-config")["data"] == deployment.one("hpc-slurm-config").inputs["files"]


def test_objects_are_those_of_the_stack(files: dict[str, str]) -> None:
    worker = body(files, "StatefulSet", "cpu")

    assert worker["spec"]["replicas"] == CLUSTER["node_sets"][0]["replicas"]
    assert worker["metadata"]["namespace"] == "hpc"
    owners = {entry["metadata"]["labels"]["soperator-pulumi/owner"] for entry in bodies(files)}
    assert owners == {"soperator.prod.hpc"}


def test_each_object_comes_after_those_that_pulumi_creates_before(deployment: Deployment, rendered: Manifests) -> None:
    places = {(object_.kind, object_.name): place for place, object_ in enumerate(rendered.objects)}

    def place(resource: testing.Recorded) -> int | None:
        name = str((resource.inputs.get("metadata") or resource.inputs).get("name"))
        return places.get((resource.inputs.get("kind", "ConfigMap"), name))

    pairs = [
        (place(before), place(resource))
        for resource in deployment.recorded
        for before in deployment.waits_for(resource)
    ]
    known = [(before, after) for before, after in pairs if before is not None and after is not None]
    assert len(known) > 50
    assert [pair for pair in known if pair[0] >= pair[1]] == []


def test_nothing_of_the_mocks_or_of_pulumi_s_state_is_written(deployment: Deployment, files: dict[str, str]) -> None:
    text = "".join(files.values())
    ids = [f"{resource.name}-id" for resource in deployment.recorded]

    assert [item for item in [*ids, "urn:pulumi", "__provider", "project.test"] if item in text] == []
    assert re.findall(r"(?m): (?:null|\d+\.0)$", text) == []
    assert not [name for name in files if "secret-" in name]


def test_secrets_are_left_out_and_named_with_their_keys_and_commands(
    rendered: Manifests, files: dict[str, str]
) -> None:
    text = "".join(files.values())
    for name in ("hpc-munge-key", "hpc-ssh-host-key"):
        made = testing.random_bytes("random:index/randomPassword:RandomPassword", name, {"length": 64})
        assert made["result"][:16] not in text

    assert "PRIVATE KEY" not in text
    assert [(secret.name, secret.namespace, secret.keys) for secret in rendered.secrets] == [
        ("munge-key", "hpc", ("munge.key",)),
        ("ssh-host-key", "hpc", ("ssh_host_ed25519_key",)),
        ("database-password", "hpc", ("password",)),
        ("slurmdbd-config", "hpc", ("slurm.conf", "slurmdbd.conf")),
    ]
    create = 'kubectl create secret generic munge-key --namespace hpc --from-file="$folder"/munge.key'
    assert create in files["secrets.md"]


KUBECTL = """\
#!/bin/sh
case $1 in
get) printf '%s %s' "$3" "${7#*=}" > asked; printf %s "$PASSWORD"; exit "$READ" ;;
*) mkdir -p made; for word; do case $word in --from-file=*) cp -p "${word#*=}" made ;; esac; done ;;
esac
"""
"""kubectl that reads `PASSWORD` with the status `READ`, and keeps the files that a Secret is made from."""


def run_commands(section: str, folder: Path, password: str = "", status: int = 0) -> subprocess.CompletedProcess[str]:
    """Run the commands of a section about Secrets in a folder, with `KUBECTL`."""
    (commands,) = re.findall(r"```sh\n(.*?)```", section, re.DOTALL)
    program = folder / "bin" / "kubectl"
    program.parent.mkdir(exist_ok=True)
    program.write_text(KUBECTL)
    program.chmod(0o755)
    temporary = folder / "tmp"
    temporary.mkdir()
    environment = {
        "PATH": f"{program.parent}:/usr/bin:/bin",
        "TMPDIR": str(temporary),
        "PASSWORD": password,
        "READ": str(status),
    }
    return subprocess.run(
        ["sh", "-uc", commands], cwd=folder, env=environment, check=False, capture_output=True, text=True
    )


def test_the_key_of_tokens_has_the_command_that_makes_it(tmp_path: Path) -> None:
    note = SecretNote({"kind": "Secret", "metadata": {"name": "jwt-key", "namespace": "hpc"}}, ("jwt.key",))

    assert run_commands(ManifestsPage("prod", {}, [note], []).secrets_text(), tmp_path).returncode == 0

    assert len((tmp_path / "made" / "jwt.key").read_bytes()) == 64
    assert not (tmp_path / "jwt.key").exists()


EXTERNAL: dict[str, Any] = {
    "host": "db.example.com",
    "user": "slurm",
    "database": "acct",
    "password": {"secret": "rds", "key": "pass.word"},
}


@pytest.mark.parametrize("password", ["plain", r"a\b#c", "two words", r"sl\ash blank", "ends\\"])
@pytest.mark.parametrize(
    ("database", "asked"),
    [
        ({}, 'database-password {{index .data "password" | base64decode}}'),
        ({"external": EXTERNAL}, 'rds {{index .data "pass.word" | base64decode}}'),
    ],
    ids=["own", "external"],
)
def test_the_files_of_slurmdbd_have_commands_that_make_them_with_the_password_of_the_database(
    database: dict[str, Any], asked: str, password: str, tmp_path: Path
) -> None:
    changes: dict[str, Any] = {"accounting": {"database": database}} if database else {}
    made = deployed(**changes)
    section = slurmdbd_section(manifests_of(made).files("prod"))

    assert run_commands(section, tmp_path, password).returncode == 0

    (files,) = [resource.inputs["files"] for resource in made.recorded if resource.name.endswith("slurmdbd-config")]
    written = (tmp_path / "made" / "slurmdbd.conf").read_text().splitlines()
    wanted = str(files.value["slurmdbd.conf"]).splitlines()
    assert (tmp_path / "made" / "slurm.conf").read_text() == files.value["slurm.conf"]
    assert (tmp_path / "asked").read_text() == asked
    assert sorted(written[:-1]) == sorted(line for line in wanted if not line.startswith("StoragePass="))
    assert unquoted_password(written[-1].removeprefix("StoragePass=")) == password


def slurmdbd_section(files: dict[str, str]) -> str:
    return files["secrets.md"].partition("## Secret slurmdbd-config in hpc\n")[2]


@pytest.mark.parametrize(
    ("password", "status", "words"),
    [("", 1, ""), ("cut", 1, ""), ("", 0, "the Secret database-password has an empty password")],
    ids=["refused", "interrupted", "empty"],
)
def test_no_secret_is_made_if_its_password_cannot_be_read(
    files: dict[str, str], password: str, status: int, words: str, tmp_path: Path
) -> None:
    done = run_commands(slurmdbd_section(files), tmp_path, password, status)

    assert done.returncode != 0
    assert words in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["asked", "bin", "tmp"]
    assert not [*(tmp_path / "tmp").iterdir()]


def test_files_with_secrets_are_their_users_alone_and_are_removed(files: dict[str, str], tmp_path: Path) -> None:
    assert run_commands(slurmdbd_section(files), tmp_path, "hunter2").returncode == 0

    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "made").glob("slurm*.conf")} == {0o600}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["asked", "bin", "made", "tmp"]
    assert not [*(tmp_path / "tmp").iterdir()]


def test_files_of_the_user_s_own_stay(files: dict[str, str], tmp_path: Path) -> None:
    own = tmp_path / "slurm.conf"
    own.write_text("ClusterName=other\n")

    assert run_commands(slurmdbd_section(files), tmp_path, "hunter2").returncode == 0

    assert own.read_text() == "ClusterName=other\n"
    assert (tmp_path / "made" / "slurm.conf").read_text() != own.read_text()


def test_no_secret_is_made_of_an_empty_file(tmp_path: Path) -> None:
    head = tmp_path / "bin" / "head"
    head.parent.mkdir()
    head.write_text("#!/bin/sh\nexit 1\n")
    head.chmod(0o755)
    note = SecretNote({"kind": "Secret", "metadata": {"name": "jwt-key", "namespace": "hpc"}}, ("jwt.key",))

    assert run_commands(ManifestsPage("prod", {}, [note], []).secrets_text(), tmp_path).returncode != 0

    assert not (tmp_path / "made").exists()


def test_a_secret_of_the_program_that_has_files_of_slurmdbd_is_not_shown() -> None:
    def program() -> None:
        text = pulumi.Output.secret("Some=hidden-value")
        kubernetes.core.v1.Secret("c", metadata={"name": "c"}, string_data={"slurmdbd.conf": text})

    assert "hidden-value" not in rendered_program(program)["secrets.md"]


def test_a_secret_with_several_keys_is_one_that_must_exist() -> None:
    images = {**CLUSTER["images"], "rest": "registry.example/rest:1"}
    made = deployed(rest={"tls": {"secret": "rest-certificate"}}, images=images)

    page = manifests_of(made).files("prod")["README.md"]

    assert page.splitlines().count("- Secret `rest-certificate` (rest.tls)") == 1


def test_the_same_stack_renders_the_same_bytes(deployment: Deployment, files: dict[str, str]) -> None:
    """Registrations arrive in another order each time, and so do the keys of their inputs."""

    def shuffled(value: Any) -> Any:
        if isinstance(value, dict):
            keys = random.sample([*value], len(value))
            return {key: shuffled(value[key]) for key in keys}
        return [shuffled(item) for item in value] if isinstance(value, list) else value

    recorded = [dataclasses.replace(resource, inputs=shuffled(resource.inputs)) for resource in deployment.recorded]
    random.shuffle(recorded)

    assert manifests_of(Deployment(tuple(recorded), {})).files("prod") == files


def test_the_page_names_the_limits_and_what_must_exist(files: dict[str, str]) -> None:
    page = files["README.md"]

    for limit in (
        "No drain",
        "No transaction",
        "No rolling update",
        "No switch",
        "No protection",
        "No order",
        "No return",
    ):
        assert f"**{limit}" in page
    assert "PersistentVolumeClaim `datasets` (jail.submounts[0].existing_claim)" in page
    assert "addresses of the Kubernetes API are not closed" in page
    assert set(re.findall(r"(?m)^kubectl apply --server-side -f (\S+)$", page)) - {"."} <= files.keys()


@pytest.mark.parametrize("served_by", ServedBy)
def test_the_manifests_are_the_same_whatever_process_acts(files: dict[str, str], served_by: ServedBy) -> None:
    assert manifests_of(deployed(served_by)).files("prod") == files
    for act in _ACTS.keys() - {"ImagesPublished", "InstalledParts"}:  # of `containers.images`, and of a platform
        assert f"| {act} |" in files["README.md"]


def test_addresses_of_the_api_that_the_stack_gives_are_closed(files: dict[str, str]) -> None:
    given = manifests_of(deployed(network={"api_servers": ["10.0.0.1/32"]})).files("prod")

    assert "10.0.0.1/32" in str(body(given, "NetworkPolicy", "worker"))
    assert "10.0.0.1/32" not in str(body(files, "NetworkPolicy", "worker"))
    assert "addresses of the Kubernetes API are not closed" not in given["README.md"]


def test_objects_of_two_clusters_do_not_overwrite_each_other() -> None:
    def program() -> None:
        for name in ("one", "two"):
            SlurmCluster(name, {**CLUSTER, "name": name})

    files = manifests_of(deploy(program)).files("prod")

    assert len([name for name in files if name.endswith("statefulset-cpu.yaml")]) == 2
    assert sorted({entry["metadata"].get("namespace", "") for entry in bodies(files)}) == ["", "one", "two"]


def rendered_program(program: Callable[[], object]) -> dict[str, str]:
    return manifests_of(deploy(program)).files("mine")


def test_objects_of_a_program_s_own_are_rendered_but_for_those_with_secrets() -> None:
    def program() -> None:
        kubernetes.core.v1.ConfigMap("a", metadata={"name": "a"}, data={"x": "1"})
        hidden = pulumi.Output.secret("hidden-value")
        kubernetes.core.v1.ConfigMap("b", metadata={"name": "b"}, data={"y": hidden})
        kubernetes.core.v1.Secret("c", metadata={"name": "c"}, string_data={"z": hidden})
        kubernetes.core.v1.NamespacePatch("d", metadata={"name": "d"})

    files = rendered_program(program)

    assert [name for name in files if name.endswith(".yaml")] == ["001-configmap-a.yaml"]
    assert "## ConfigMap b" in files["secrets.md"]
    assert "## Secret c" in files["secrets.md"]
    assert "NamespacePatch d | not rendered" in files["README.md"]
    assert "hidden-value" not in "".join(files.values())


def test_an_object_without_a_name_is_refused() -> None:
    with pytest.raises(ManifestError, match=r"1 objects have no metadata\.name: ConfigMap"):
        rendered_program(lambda: kubernetes.core.v1.ConfigMap("a", data={"x": "1"}))


def test_charts_of_a_platform_are_commands_of_the_page() -> None:
    platform = {"cert_manager": {}, "mariadb_operator": {}, "cilium": {"exists": True}}
    files = manifests_of(deploy(lambda: Platform("platform", platform))).files("prod")
    page = files["README.md"]
    assert "`helm upgrade --install cert-manager cert-manager --repo https://charts.jetstack.io " in page
    assert "helm upgrade --install mariadb-operator-crds oci://ghcr.io/mariadb-operator/charts/mariadb-oper" in page
    assert "| InstalledParts | checks versions and settings " in page
    assert any(name.endswith("namespace-cert-manager.yaml") for name in files)
