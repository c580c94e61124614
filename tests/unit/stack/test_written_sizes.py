"""`soperator preflight FILE --write-sizes`: numbers of the machines in place of `all` and `all but 2`."""

import errno
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from soperator_pulumi import cli
from soperator_pulumi.cli import preflight
from soperator_pulumi.errors import KubernetesError, SpecError
from soperator_pulumi.kube.access import Access
from soperator_pulumi.kube.verbs import Json
from soperator_pulumi.spec.cluster import parse_cluster
from soperator_pulumi.stack.written_sizes import write_sizes
from tests.fakes.small_world import SmallWorld
from tests.strategies import a_cluster
from tools import paths

NAMES = ("controller", "worker", "login", "accounting", "database", "munge", "jail_tools", "jail")
IMAGES = {name: f"registry.example.com/{name}:1" for name in NAMES}

STACK = f"""\
# The production cluster
config:
  soperator:cluster:
    name: hpc
    accounting: none
    images: {IMAGES}
    node_sets:
      - name: big   # all of them
        cpus: SIZE_OF_CPUS  # as much as there is
        memory_gib: "all but 8"
        node_selector: {{pool: big}}
        replicas: 0

      - {{name: small, cpus: 2, memory_gib: 4}}
"""


def a_machine(name: str, cpu: str, memory: str, pool: str = "big", **devices: str) -> Json:
    allocatable = {"cpu": cpu, "memory": memory, "pods": "110", **devices}
    status = {"allocatable": allocatable, "conditions": [{"type": "Ready", "status": "True"}]}
    return {"metadata": {"name": name, "labels": {"pool": pool}}, "spec": {}, "status": status}


def a_world(*machines: Json) -> SmallWorld:
    world = SmallWorld()
    for machine in machines:
        world.objects[f"/api/v1/nodes/{machine['metadata']['name']}"] = machine
    container = {"name": "agent", "resources": {"requests": {"cpu": "1", "memory": "2Gi"}}}
    world.objects["/apis/apps/v1/daemonsets/agent"] = {
        "metadata": {"name": "agent"},
        "spec": {"template": {"metadata": {}, "spec": {"containers": [container]}}},
    }
    return world


BIG = (a_machine("m1", "144", "1Ti"), a_machine("m2", "127900m", "2Ti"), a_machine("m3", "4", "8Gi", "small"))


def written(file: Path, text: str, *machines: Json) -> list[str]:
    """Return the lines that are reported."""
    reported: list[str] = []
    file.write_bytes(text.encode())
    write_sizes(file, {}, Access(), lambda _: a_world(*(machines or BIG)), reported.append)
    return reported


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "Pulumi.prod.yaml"


@pytest.mark.parametrize(("size", "cpus"), [("all", 126), ("all but 6", 120), ("'all'", 126), ("&size all", 126)])
def test_sizes_are_those_of_the_smallest_machine_after_daemon_sets_and_sidecars(
    file: Path, size: str, cpus: int
) -> None:
    reported = written(file, STACK.replace("SIZE_OF_CPUS", size))

    big, small = yaml.safe_load(file.read_text())["config"]["soperator:cluster"]["node_sets"]
    assert (big["cpus"], big["memory_gib"]) == (cpus, 1013)
    assert (small["cpus"], small["memory_gib"]) == (2, 4)
    assert [line.removeprefix("soperator:cluster.node_sets[0].") for line in reported] == [
        f"cpus: writes {cpus}, of the 126 CPUs that m2 has for a pod, the smallest of 2 machines",
        "memory_gib: writes 1013, of the 1021.88 GiB that m1 has for a pod, the smallest of 2 machines",
    ]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_nothing_else_of_the_file_changes(file: Path, end: str) -> None:
    text = STACK.replace("SIZE_OF_CPUS", "all").replace("\n", end)
    written(file, text)

    wanted = text.replace("cpus: all", "cpus: 126").replace('"all but 8"', "1013")
    assert file.read_bytes() == wanted.encode()


def test_a_second_run_writes_nothing(file: Path) -> None:
    written(file, STACK.replace("SIZE_OF_CPUS", "all"))
    text = file.read_text()

    assert "has no size to write" in written(file, text)[0]
    assert file.read_text() == text


def test_a_size_that_several_clusters_share_fits_the_machines_of_all_of_them(file: Path) -> None:
    text = f"""\
config:
  soperator:defaults:
    accounting: none
    images: {IMAGES}
    node_sets: [{{name: cpu, cpus: all, memory_gib: 1}}]
  soperator:clusters:
    one: {{}}
    two: {{node_sets: [{{name: cpu, cpus: all but 1, memory_gib: 1, node_selector: {{pool: big}}}}]}}
"""
    written(file, text)

    config = yaml.safe_load(file.read_text())["config"]
    assert config["soperator:defaults"]["node_sets"][0]["cpus"] == 2, "of m3, which the first cluster may use"
    assert config["soperator:clusters"]["two"]["node_sets"][0]["cpus"] == 125


def test_a_size_by_an_alias_is_written_once_as_the_smallest(file: Path) -> None:
    text = STACK.replace("SIZE_OF_CPUS", "&size all").replace("cpus: 2,", "cpus: *size,")
    written(file, text)

    sets = yaml.safe_load(file.read_text())["config"]["soperator:cluster"]["node_sets"]
    assert [node_set["cpus"] for node_set in sets] == [2, 2]


def test_sizes_of_several_merged_mappings_are_written(file: Path) -> None:
    text = STACK.replace(
        "        cpus: SIZE_OF_CPUS", "        <<: {partitions: [main]}\n        <<: {cpus: all}\n       "
    )
    written(file, text)

    assert "<<: {cpus: 126}" in file.read_text()


@pytest.mark.parametrize("size", ["!!str all", '"\\x61ll"', "|-\n          all"])
def test_a_size_in_another_form_is_refused(file: Path, size: str) -> None:
    text = STACK.replace("SIZE_OF_CPUS  # as much as there is", size)
    with pytest.raises(SpecError, match=r'got "all" in another form\. Write it on the line of its key'):
        written(file, text)

    assert file.read_text() == text


def test_a_mapping_that_merges_itself_has_its_sizes_written(file: Path) -> None:
    text = STACK.replace("- {name: small, cpus: 2,", "- &small {<<: *small, name: small, cpus: all,")
    written(file, text.replace("SIZE_OF_CPUS", "4"))

    assert "name: small, cpus: 2," in file.read_text()


def test_a_description_without_a_stack_has_sizes_written_too(tmp_path: Path) -> None:
    file = tmp_path / "hpc.yaml"
    node_set = {"name": "cpu", "cpus": "all", "memory_gib": 1, "reserved_cores": 2, "node_selector": {"pool": "big"}}
    written(file, yaml.safe_dump({"name": "hpc", "accounting": "none", "images": IMAGES, "node_sets": [node_set]}))

    assert yaml.safe_load(file.read_text())["node_sets"][0]["cpus"] == 126


def test_only_machines_with_the_devices_of_a_node_count(file: Path) -> None:
    text = STACK.replace("SIZE_OF_CPUS", "all").replace("replicas: 0", "gpus: {count: 8, type: h100}")
    written(file, text, *BIG, a_machine("g1", "192", "2Ti", **{"nvidia.com/gpu": "8"}))

    assert "cpus: 190 " in file.read_text()


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        (("replicas: 0", "gpus: {count: 8, type: h100}"), "the largest has 0 of 8 nvidia.com/gpu"),
        (("pool: big", "pool: huge"), "none of 3 machines has the label pool=huge"),
        (("all but 8", "all but 4000"), "nothing would be left of the 1021.88 GiB that m1 has for a pod"),
        (("cpus: all", "cpus: all but 1.5"), 'got "all but 1.5", but CPUs are whole numbers'),
        (("replicas: 0", "sockets: 2"), 'got "all", but it is the product of the layout'),
        (("replicas: 0", "pod_resources: {}"), 'got "all", but pod_resources is the size of the pod'),
        (("cpus: all", "cpus: >-\n          all\n        #"), "Write it on the line of its key"),
    ],
)
def test_a_size_that_no_machine_tells_is_refused_and_the_file_stays(
    file: Path, changed: tuple[str, str], words: str
) -> None:
    text = STACK.replace("SIZE_OF_CPUS", "all").replace(*changed)

    with pytest.raises(SpecError, match=re.escape(words)):
        written(file, text)
    assert file.read_text() == text


def test_a_file_that_cannot_be_written_stays_as_it_is(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "replace", refuse)
    text = STACK.replace("SIZE_OF_CPUS", "all")

    with pytest.raises(SpecError, match=r"No space left on device\. Name a file that can be written"):
        written(file, text)
    assert file.read_text() == text
    assert [*file.parent.iterdir()] == [file]


def test_a_link_to_the_file_and_the_mode_of_the_file_stay(file: Path) -> None:
    target = file.with_name("target.yaml")
    target.touch(mode=0o640)
    file.symlink_to(target)
    written(file, STACK.replace("SIZE_OF_CPUS", "all"))

    assert file.is_symlink()
    assert "cpus: 126" in target.read_text()
    assert target.stat().st_mode & 0o777 == 0o640


def test_without_the_daemon_sets_no_size_is_written(file: Path) -> None:
    class Forbidden(SmallWorld):
        def find(self, path: str, *rest: Any, **named: Any) -> list[Json]:
            if path.endswith("daemonsets"):
                raise KubernetesError("daemonsets is forbidden")
            return super().find(path, *rest, **named)

    text = STACK.replace("SIZE_OF_CPUS", "all")
    file.write_text(text)
    with pytest.raises(KubernetesError, match="forbidden"):
        write_sizes(file, {}, Access(), lambda _: Forbidden(), lambda _: None)
    assert file.read_text() == text


def test_machines_of_a_kubernetes_are_read_once_for_all_sizes_of_all_clusters(file: Path) -> None:
    paths_read: list[str] = []

    class Counting(SmallWorld):
        def find(self, path: str, *rest: Any, **named: Any) -> list[Json]:
            paths_read.append(path)
            return super().find(path, *rest, **named)

    world = Counting()
    world.objects.update(a_world(*BIG).objects)
    node_sets = [{"name": "cpu", "cpus": "all", "memory_gib": "all"}]
    clusters = {name: {"accounting": "none", "images": IMAGES, "node_sets": node_sets} for name in ("one", "two")}
    file.write_text(yaml.safe_dump({"config": {"soperator:clusters": clusters}}))

    write_sizes(file, {}, Access(), lambda _: world, lambda _: None)

    assert sorted(paths_read) == ["/api/v1/nodes", "/apis/apps/v1/daemonsets"]
    assert "all" not in file.read_text()


@pytest.mark.parametrize("field", ["cpus", "memory_gib"])
@pytest.mark.parametrize("size", ["all", "all but 2"])
def test_a_size_that_is_not_written_is_refused_with_the_command_that_writes_it(field: str, size: str) -> None:
    node_set = {"name": "cpu", "cpus": 1, "memory_gib": 1, field: size}

    with pytest.raises(
        SpecError, match=f'{field}: got "{size}", which only .* `soperator preflight FILE --write-sizes`'
    ):
        parse_cluster(a_cluster(node_sets=[node_set]))


def test_the_command_writes_the_sizes_and_then_checks_them(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text(STACK.replace("SIZE_OF_CPUS", "all").replace("replicas: 0", ""))
    world = a_world(*BIG)
    monkeypatch.setattr(preflight, "Cluster", lambda _access: world)

    cli.main(["preflight", str(file), "--read-only", "--write-sizes"])

    printed = capsys.readouterr()
    assert "cpus: writes 126" in printed.err
    assert "node_sets[0]: 2 of 3 machines fit, with room for 126 CPUs and 1021 GiB" in printed.out


def test_the_page_shows_node_sets_whose_sizes_can_be_written(file: Path) -> None:
    page = (paths.ROOT / "docs" / "placement.md").read_text()
    (block,) = [text for text in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL) if "cpus: all" in text]
    described = yaml.safe_load(block)
    config = {"soperator:cluster": {"name": "hpc", "accounting": "none", "images": IMAGES, **described}}
    written(file, yaml.safe_dump({"config": config}), a_machine("m1", "192", "2Ti", "cpu"))

    (node_set,) = yaml.safe_load(file.read_text())["config"]["soperator:cluster"]["node_sets"]
    assert (node_set["cpus"], node_set["memory_gib"]) == (188, 2029)
