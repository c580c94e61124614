"""`soperator preflight`: files that it reads, exit status, and the form of its report."""

import argparse
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from pulumi_kubernetes.storage.v1 import StorageClass

from soperator_pulumi import SlurmCluster, cli
from soperator_pulumi.cli import preflight
from soperator_pulumi.cli.preflight import Options, add_options, options_of
from soperator_pulumi.errors import SpecError
from soperator_pulumi.operations.preflight import (
    access_rights,
    admission,
    api_server,
    image_pulls,
    machine_clocks,
    machine_fit,
    machine_probe,
    network_probe,
    preflight_run,
    provided_parts,
    shared_claim,
)
from soperator_pulumi.operations.preflight.diagnosis import (
    Diagnosis,
    Severity,
    json_report,
    passed,
    refused,
    text_report,
    warned,
)
from soperator_pulumi.operations.preflight.planned import PlannedCluster
from soperator_pulumi.operations.preflight.provided_parts import missing_drivers
from soperator_pulumi.stack.preflight_plan import planned_clusters, plans_of_file
from soperator_pulumi.testing import deploy
from tests.fakes.shuffled_loop import shuffle_registrations
from tests.fakes.small_world import SmallWorld
from tools import paths

NAMES = ("controller", "worker", "login", "accounting", "database", "munge", "jail_tools", "jail")
IMAGES = {name: f"registry.example.com/{name}:1" for name in NAMES}
CPU = {"name": "cpu", "replicas": 4, "cpus": 16, "memory_gib": 64}
BIG = {"name": "big", "replicas": 1, "cpus": 64, "memory_gib": 512, "node_selector": {"pool": "big"}}
HPC = {"name": "hpc", "accounting": "none", "images": IMAGES, "node_sets": [CPU, BIG]}

PAGE = (paths.ROOT / "docs" / "preflight.md").read_text()


def a_file(folder: Path, content: object, name: str = "hpc.yaml") -> Path:
    file = folder / name
    file.write_text(yaml.safe_dump(content))
    return file


def planned_of_file(file: Path, outputs: dict[str, dict[str, str]] | None = None) -> list[PlannedCluster]:
    return [plan for plan, _ in plans_of_file(file, outputs) if isinstance(plan, PlannedCluster)]


# Files


def test_a_description_is_planned_as_it_would_be_applied(tmp_path: Path) -> None:
    (planned,) = planned_of_file(a_file(tmp_path, HPC))
    assert [worker.place for worker in planned.workers] == ["node_sets[0]", "node_sets[1]"]
    assert [worker.replicas for worker in planned.workers] == [4, 1]
    assert planned.workers[1].spec["nodeSelector"] == {"pool": "big"}
    assert {"controller", "login", "jail.populate"} <= {pod.place for pod in planned.pods}
    assert planned.prerequisites.namespace == "hpc"
    assert not planned.owner_known


def test_pods_have_the_place_of_the_field_that_chooses_their_machines(tmp_path: Path) -> None:
    def chosen(place: str) -> dict[str, Any]:
        return {"node_selector": {"place": place}}

    described: dict[str, Any] = {
        **HPC,
        "images": {**IMAGES, "rest": IMAGES["login"], "exporter": IMAGES["login"]},
        "controller": chosen("controller"),
        "login": chosen("login"),
        "jail": {"populate": chosen("jail.populate")},
        "accounting": {
            "slurmdbd": chosen("accounting.slurmdbd"),
            "database": {"own": chosen("accounting.database.own")},
        },
        "metrics": chosen("metrics"),
        "rest": {"tls": {"secret": "rest"}, **chosen("rest")},
        "containers": {},
        "node_sets": [{**CPU, **chosen("node_sets_0")}],
    }
    (planned,) = planned_of_file(a_file(tmp_path, described))
    found = {pods.component: (pods.place, pods.spec["nodeSelector"]["place"]) for pods in planned.pods}
    assert found.pop("worker") == ("node_sets[0]", "node_sets_0")
    assert found.pop("admin") == ("jail.admin_shell", "controller"), "its machines are the controller's"
    assert "container-images" in found
    assert {component: place for component, (place, _) in found.items()} == {
        component: chosen_by for component, (_, chosen_by) in found.items()
    }


@pytest.mark.parametrize("seed", range(2))
def test_node_sets_have_the_places_of_the_spec_in_whatever_order_pulumi_registers_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    shuffle_registrations(monkeypatch, seed)
    names = [f"n{number}" for number in (3, 1, 4, 2, 5)]
    described = {**HPC, "node_sets": [{**CPU, "name": name, "replicas": int(name[1])} for name in names]}
    (planned,) = planned_of_file(a_file(tmp_path, described))
    assert [worker.replicas for worker in planned.workers] == [3, 1, 4, 2, 5]


def test_a_stack_is_planned_over_the_defaults_of_its_project(tmp_path: Path) -> None:
    defaults = {"value": {"images": IMAGES, "cluster_domain": "site.example"}}
    a_file(tmp_path, {"name": "slurm", "config": {"soperator:defaults": defaults}}, "Pulumi.yaml")
    own = {key: value for key, value in HPC.items() if key != "images"}
    config = {"soperator:clusters": {"one": own, "two": {**own, "name": "two"}}}
    (tmp_path / "stacks").mkdir()
    first, second = planned_of_file(a_file(tmp_path / "stacks", {"config": config}, "Pulumi.prod.yaml"))
    assert (first.key, second.key) == ("soperator:clusters.one", "soperator:clusters.two")
    assert (first.prerequisites.owner, first.owner_known) == ("slurm.prod.one", True)
    assert first.cluster_domain == "site.example"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({"config": {"other:key": 1}}, "describes no cluster"),
        ({**HPC, "node_sets": [{**CPU, "cpus": 0}]}, "node_sets[0].cpus"),
        (["a list"], "holds no keys"),
        ({"config": {"soperator:clusters": ["hpc"]}}, "soperator:clusters: got a list, needs a mapping"),
        ({"config": {"soperator:cluster": None}}, "soperator:cluster"),
        ({"config": {"soperator:cluster": HPC, "soperator:platform": {"gpu": {}}}}, "soperator:platform"),
    ],
)
def test_a_file_that_describes_no_cluster_is_refused_in_words(tmp_path: Path, content: object, words: str) -> None:
    with pytest.raises(SpecError, match=re.escape(words)):
        planned_of_file(a_file(tmp_path, content))


def test_a_file_is_read_as_pulumi_reads_it(tmp_path: Path) -> None:
    file = tmp_path / "hpc.yaml"
    described = {**HPC, "node_sets": [{**CPU, "node_selector": {"bought": "DATE"}}]}
    file.write_text(yaml.safe_dump(described).replace("DATE", "2026-11-25"))
    (planned,) = planned_of_file(file)
    assert planned.workers[0].spec["nodeSelector"] == {"bought": "2026-11-25"}


@pytest.mark.parametrize("text", [f"a: {'[' * 3000}{']' * 3000}", "a: [", "\0"])
def test_a_file_that_is_not_yaml_is_refused_in_words(tmp_path: Path, text: str) -> None:
    file = tmp_path / "hpc.yaml"
    file.write_text(text)
    with pytest.raises(SpecError, match="is not YAML"):
        planned_of_file(file)


def test_a_project_may_name_the_folder_of_its_stacks(tmp_path: Path) -> None:
    a_file(tmp_path, {"name": "slurm", "config": "stacks"}, "Pulumi.yaml")
    (tmp_path / "stacks").mkdir()
    (planned,) = planned_of_file(
        a_file(tmp_path / "stacks", {"config": {"soperator:cluster": HPC}}, "Pulumi.prod.yaml")
    )
    assert planned.prerequisites.owner.startswith("slurm.prod.")


def test_a_cluster_of_a_stack_stands_on_the_stack_s_platform(tmp_path: Path) -> None:
    gpus = {**CPU, "gpus": {"count": 8}}
    platform = {"gpu_operator": {"resource": "nvidia.com/gpu.own"}, "storage_class": "shared"}
    config = {"soperator:platform": platform, "soperator:cluster": {**HPC, "node_sets": [gpus]}}
    (planned,) = planned_of_file(a_file(tmp_path, {"config": config}, "Pulumi.prod.yaml"))
    assert planned.platform.devices_to_come == ("nvidia.com/gpu*", "nvidia.com/mig-*")
    limits = planned.workers[0].spec["containers"][0]["resources"]["limits"]
    assert limits["nvidia.com/gpu.own"] == "8"


ADAPTERS = {"shared_rdma": [{"name": "hca"}], "host_devices": [{"name": "vf"}]}


@pytest.mark.parametrize(
    ("parts", "to_come"),
    [
        ({"network_operator": ADAPTERS}, ("rdma/hca", "nvidia.com/vf")),
        ({"gpu_operator": {"exists": True}}, ()),
        ({"network_operator": {"exists": True, "shared_rdma": [{"name": "hca"}]}}, ()),
    ],
)
def test_devices_to_come_are_those_that_the_platform_installs(
    tmp_path: Path, parts: dict[str, Any], to_come: tuple[str, ...]
) -> None:
    config = {"soperator:platform": {**parts, "storage_class": "shared"}, "soperator:cluster": HPC}
    (planned,) = planned_of_file(a_file(tmp_path, {"config": config}, "Pulumi.prod.yaml"))
    assert planned.platform.devices_to_come == to_come


def test_rdma_that_the_platform_does_not_offer_is_refused(tmp_path: Path) -> None:
    node_set = {**CPU, "gpus": {"count": 8}, "rdma": {"resource": "rdma/hca"}}
    platform: dict[str, Any] = {"gpu_operator": {}, "storage_class": "shared"}
    severities = []
    for parts in (platform, {**platform, "network_operator": {"shared_rdma": [{"name": "hca"}]}}):
        config = {"soperator:platform": parts, "soperator:cluster": {**HPC, "node_sets": [node_set]}}
        (planned,) = planned_of_file(a_file(tmp_path, {"config": config}, "Pulumi.prod.yaml"))
        (found,) = machine_fit.fit_findings(planned.workers, [_machine()], to_come=planned.platform.devices_to_come)
        severities.append(found.severity)
    assert severities == [Severity.REFUSED, Severity.WARNED]


def test_what_the_program_itself_makes_need_not_be_there_before(tmp_path: Path) -> None:
    def program() -> None:
        StorageClass("class", metadata={"name": "ours"}, provisioner="nfs.csi.k8s.io")
        SlurmCluster("hpc", {**HPC, "jail": {"storage": {"storage_class": "ours"}}})

    (planned,) = planned_clusters(deploy(program))
    assert [reference.path for reference in planned.prerequisites.references] == ["storage.state.storage_class"]


@pytest.mark.parametrize(("constrain", "constrains"), [("cgroup", True), ("none", False)])
def test_a_plan_knows_whether_jobs_are_held_to_their_resources(
    tmp_path: Path, constrain: str, *, constrains: bool
) -> None:
    (planned,) = planned_of_file(a_file(tmp_path, {**HPC, "slurm": {"constrain": constrain}}))
    assert planned.constrains is constrains


STORAGE = "organization/storage/prod"
REFERRING = {**HPC, "jail": {"storage": {"storage_class": {"from_stack": STORAGE, "output": "class"}}}}


def test_outputs_of_other_stacks_are_given_or_all_named(tmp_path: Path) -> None:
    own = {**REFERRING, "node_sets": [{**CPU, "runtime_class": {"from_stack": STORAGE, "output": "runtime"}}]}
    file = a_file(tmp_path, {"config": {"soperator:cluster": own}}, "Pulumi.prod.yaml")
    with pytest.raises(SpecError) as refused_file:
        planned_of_file(file, {STORAGE: {"other": "x"}})
    assert [str(problem).partition(" of another")[0] for problem in refused_file.value.problems] == [
        'soperator:cluster.jail.storage.storage_class: names the output "class"',
        'soperator:cluster.node_sets[0].runtime_class: names the output "runtime"',
    ]
    assert f"--stack-output {STORAGE}:class=<value>" in str(refused_file.value)

    (planned,) = planned_of_file(file, {STORAGE: {"class": "shared", "runtime": "nvidia"}})
    assert planned.workers[0].spec["runtimeClassName"] == "nvidia"
    assert "shared" in {reference.name for reference in planned.prerequisites.references}


def test_the_csi_driver_of_a_volume_that_the_program_makes_has_to_be_there(tmp_path: Path) -> None:
    storage = {"nfs": {"server": "10.0.0.7", "path": "/export", "csi": True}, "size_gib": 10}
    config = {"soperator:platform": {"shared_storage": storage}, "soperator:cluster": HPC}
    (planned,) = planned_of_file(a_file(tmp_path, {"config": config}, "Pulumi.prod.yaml"))
    assert planned.platform.csi_drivers == ("nfs.csi.k8s.io",)

    world = SmallWorld()
    places = [missing_driver.path for missing_driver in missing_drivers(world, planned.platform.csi_drivers)]
    assert places == ["CSIDriver nfs.csi.k8s.io"]
    world.objects["/apis/storage.k8s.io/v1/csidrivers/nfs.csi.k8s.io"] = {"metadata": {"name": "nfs.csi.k8s.io"}}
    assert [*missing_drivers(world, planned.platform.csi_drivers)] == []


# The command


def parsed(*arguments: str) -> Options:
    parser = argparse.ArgumentParser()
    add_options(parser)
    return options_of(parser.parse_args(arguments))


def test_options_are_what_the_command_line_names() -> None:
    options = parsed("--skip=network", "--accept", "load balancer", "--timeout=90", f"--stack-output={STORAGE}:a=b=c")
    assert "network" not in options.probes
    assert (options.accepted, options.seconds) == (("load balancer",), 90)
    assert options.stack_outputs == {STORAGE: {"a": "b=c"}}


@pytest.mark.parametrize(
    ("argument", "words"),
    [
        ("--accept=storge", 'got "storge", which is none of them. Did you mean "storage"? Allowed: release, '),
        ("--accept=probes", 'got "probes", which is none of them. '),
        ("--skip=machines", "Allowed: admission, images, runtime, network, storage"),
        ("--timeout=nan", 'got "nan", needs a number of seconds from 1 to 840'),
        ("--timeout=-3", 'got "-3", needs a number'),
        ("--timeout=1e9", 'got "1e9", needs a number'),
        ("--timeout=soon", 'got "soon", needs a number'),
        ("--stack-output=storage:class", 'got "storage:class", needs <organization>/<project>/<stack>:<output>=<val'),
    ],
)
def test_an_option_that_is_none_is_refused_with_what_is_allowed(
    argument: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        parsed(argument)
    assert ended.value.code == preflight.EXIT_NOT_CHECKED
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(("accepted", "status"), [((), preflight.EXIT_REFUSED), (("prerequisites", "rights"), 0)])
def test_a_refusal_is_the_exit_status_unless_it_is_accepted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], accepted: tuple[str, ...], status: int
) -> None:
    claim = {"existing_claim": "none"}
    world, file = SmallWorld(), a_file(tmp_path, {**HPC, "jail": {"storage": claim}})
    world.objects["/api/v1/nodes/n1"] = _machine()
    options = Options(json=True, probes=(), accepted=accepted)
    planned = planned_of_file(file)
    assert preflight.check([(cluster, world) for cluster in planned], options, lambda _line: None) == status

    (cluster,) = json.loads(capsys.readouterr().out)["clusters"]
    severities = {finding["severity"] for finding in cluster["findings"] if finding["check"] == "prerequisites"}
    assert severities == {"warned" if accepted else "refused"}


def test_a_platform_alone_has_a_report_under_its_own_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = {"soperator:platform": {"cert_manager": {}, "storage_class": "shared"}}
    plans = plans_of_file(a_file(tmp_path, {"config": config}, "Pulumi.prod.yaml"))
    assert preflight.check([(plan, SmallWorld()) for plan, _ in plans], Options(), lambda _line: None) == 0

    first, second = capsys.readouterr().out.splitlines()
    assert first == "soperator:platform: 0 refused, 0 warned, 1 passed."
    assert re.fullmatch(r"  passed  rights: platform: all \d+ rights are there\.", second)


def test_nothing_is_created_by_a_read_only_run(tmp_path: Path) -> None:
    world = SmallWorld()
    world.objects["/api/v1/nodes/n1"] = _machine()
    before = {*world.objects}
    preflight.check([(cluster, world) for cluster in planned_of_file(a_file(tmp_path, HPC))], Options(probes=()), print)
    assert {*world.objects} == before


def test_a_kubernetes_that_is_not_reached_is_reported_with_an_exit_status_of_its_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [str(a_file(tmp_path, HPC)), "--kubeconfig", str(tmp_path / "none")]
    assert cli.main(["preflight", *arguments]) == preflight.EXIT_NOT_CHECKED
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("error: kubeconfig")


def test_the_json_of_checks_that_cannot_be_made_has_the_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = [str(a_file(tmp_path, HPC)), "--json", "--kubeconfig", str(tmp_path / "none")]
    assert cli.main(["preflight", *arguments]) == preflight.EXIT_NOT_CHECKED
    printed = json.loads(capsys.readouterr().out)
    assert (printed["refused"], printed["clusters"]) == (None, [])
    assert printed["error"].startswith("kubeconfig")


def _machine() -> dict[str, Any]:
    labels = {"pool": "big"}
    allocatable = {"cpu": "128", "memory": "1Ti", "pods": "110"}
    status = {"allocatable": allocatable, "conditions": [{"type": "Ready", "status": "True"}]}
    return {"metadata": {"name": "n1", "labels": labels}, "spec": {}, "status": status}


# The report and its page

FOUND: dict[str, list[Diagnosis]] = {
    "soperator:cluster": [
        passed("release", "Kubernetes", "the API server is v1.36.1"),
        warned("load balancer", "login.service", "none serves it", "a controller", "Install one."),
        refused("machines", "node_sets[0]", "too large", "8 GPUs", "Lower it."),
    ]
}


def test_the_refused_come_first_each_with_its_need_and_its_cure() -> None:
    assert text_report(FOUND) == (
        "soperator:cluster: 1 refused, 1 warned, 1 passed.\n"
        "  refused machines: node_sets[0]: too large.\n"
        "          Needed: 8 GPUs.\n"
        "          Lower it.\n"
        "  warned  load balancer: login.service: none serves it.\n"
        "          Needed: a controller.\n"
        "          Install one.\n"
        "  passed  release: Kubernetes: the API server is v1.36.1.\n"
    )


def test_the_json_has_the_form_that_the_page_shows() -> None:
    shown = json.loads(re.findall(r"(?s)```json\n(.*?)```", PAGE)[0])
    written = json.loads(json_report(FOUND))
    assert written.keys() == shown.keys()
    assert written["clusters"][0].keys() == shown["clusters"][0].keys()
    assert written["clusters"][0]["findings"][0].keys() == shown["clusters"][0]["findings"][0].keys()
    assert written["refused"] is True


def test_the_page_has_a_row_for_each_check() -> None:
    modules = (access_rights, admission, image_pulls, api_server, provided_parts, machine_clocks, machine_fit,
               machine_probe, network_probe, shared_claim)  # fmt: skip
    checks = {module.CHECK for module in modules} | {"prerequisites"}
    table = PAGE.partition("## What is checked")[2].partition("\n## ")[0]
    assert {*re.findall(r"(?m)^\| ([a-z ]+) \|", table)} - {"check"} == checks
    assert {*preflight_run.CHECKS} == checks


def test_the_page_names_every_option() -> None:
    parser_options = {"--write-sizes", "--json", "--read-only", "--skip", "--accept", "--timeout", "--stack-output"}
    assert {*re.findall(r"(?m)^\| `(--[a-z-]+)", PAGE)} == parser_options
    with pytest.raises(SystemExit) as ended:
        cli.main(["preflight", "--help"])
    assert ended.value.code == 0
