"""Volume of the jail: two pods write to it at the same time, on two machines if there are two."""

from collections.abc import Iterator, Mapping, Sequence

from soperator_pulumi.kube.pods import Pod
from soperator_pulumi.kube.verbs import Json
from soperator_pulumi.operations.preflight.cluster_probe import ClusterProbe, ProbePlace, json_answer_of, probe_pod
from soperator_pulumi.operations.preflight.diagnosis import Diagnosis, passed, refused, warned
from soperator_pulumi.operations.preflight.named_objects import Reference
from soperator_pulumi.operations.preflight.network_probe import image_with_python
from soperator_pulumi.operations.preflight.planned import PlannedCluster

CHECK = "storage"

SHARED = "ReadWriteMany"

_MOUNT = "/shared"
_PATH = "jail.storage."

_EXCHANGE = """\
import json, pathlib, shutil, sys, time
folder, own, other, cleans = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4] == "cleans"
answer = {"read": False, "error": ""}
deadline = time.monotonic() + 60

def there(name):
    while time.monotonic() < deadline:
        if (folder / name).exists() and (folder / name).read_text() == name:
            return True
        time.sleep(0.2)
    return False

try:
    folder.mkdir(exist_ok=True)
    (folder / own).write_text(own)
    answer["read"] = there(other)
    (folder / f"{own}.done").write_text(f"{own}.done")
    if cleans:
        there(f"{other}.done")
        shutil.rmtree(folder)
except OSError as error:
    answer["error"] = str(error)
pathlib.Path("/dev/termination-log").write_text(json.dumps(answer))
"""
"""Program of both pods: it writes a file, and reads that of the other pod. The first pod removes both at the end."""


def storage_probe(place: ProbePlace, planned: PlannedCluster, machines: Sequence[Json]) -> ClusterProbe | Diagnosis:
    """Return the probe of the jail's volume, or a finding if none can be made.

    An existing claim is mounted as it is. For a class, a claim of one GiB is made and deleted. An existing volume is
    not probed, as it binds to a claim only once.
    """
    reference = next(
        (reference for reference in planned.prerequisites.references if reference.path.startswith(_PATH)), None
    )
    if reference is None:
        return passed(
            CHECK, _PATH.rstrip("."), "the program itself makes the volume: it is probed when the jail is filled"
        )
    if reference.kind == "PersistentVolume":
        return passed(CHECK, reference.path, f'"{reference.name}" is not mounted: a volume binds to one claim, once')
    names = [place.name(f"shared-{letter}") for letter in "ab"]
    where = [str(machines[index]["metadata"]["name"]) for index in (0, -1)]
    claim = reference.name if reference.kind == "PersistentVolumeClaim" else place.name("shared")
    objects = [] if reference.kind == "PersistentVolumeClaim" else [_claim(claim, reference)]
    like = planned.workers[0] if planned.workers else planned.pods[0]
    image = image_with_python(planned.pods)
    for own, other, machine, part in zip(names, reversed(names), where, ("cleans", "leaves"), strict=True):
        container = {
            "name": "shared",
            "image": image["image"],
            "imagePullPolicy": image.get("imagePullPolicy"),
            "command": [
                image["command"][0],
                "-I",
                "-c",
                _EXCHANGE,
                f"{_MOUNT}/.preflight-{place.run}",
                own,
                other,
                part,
            ],
            "securityContext": {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"], "add": ["DAC_OVERRIDE"]},
            },
            "volumeMounts": [{"name": "shared", "mountPath": _MOUNT}],
        }
        body = probe_pod(own, [container], like.spec, machine)
        body["spec"]["volumes"] = [{"name": "shared", "persistentVolumeClaim": {"claimName": claim}}]
        objects.append(body)

    def judge(found: Mapping[str, Pod]) -> Iterator[Diagnosis]:
        answers = [json_answer_of(found.get(name)) for name in names]
        reasons = {why for name in names if (why := _why_open(found.get(name)))}
        yield shared_finding(reference, answers, "; ".join(sorted(reasons)), across=where[0] != where[1])

    return ClusterProbe(CHECK, reference.path, objects, names, judge)


def shared_finding(
    reference: Reference, answers: Sequence[Mapping[str, object] | None], reason: str, *, across: bool
) -> Diagnosis:
    """Return the finding about the volume.

    Args:
        reference: Field and object that it is of.
        answers: Answer of each pod; None for one that has none.
        reason: Reason why pods did not start; empty if all did.
        across: True if they were on two machines.
    """
    name = f'"{reference.name}"' if reference.name else "the default class"
    cure = "Choose a class of shared file systems: docs/kubernetes.md names one of each platform."
    if None in answers:
        text = f"{name}: two pods that mount the volume do not both run: {reason or 'one did not answer in time'}"
        return refused(CHECK, reference.path, text, f"a volume that many pods mount ({SHARED})", cure)
    given = [answer for answer in answers if answer is not None]
    if errors := sorted({str(entry["error"]) for entry in given if entry.get("error")}):
        text = f"{name}: root of a pod cannot write to the volume: {'; '.join(errors)}"
        cure = "Export it with no_root_squash, and mount it read-write."
        return refused(CHECK, reference.path, text, "a volume that root writes to", cure)
    if not all(entry.get("read") for entry in given):
        text = f"{name}: a pod does not see what another one has written to the volume"
        return refused(CHECK, reference.path, text, "one file system for all pods", cure)
    if not across:
        text = f"{name}: two pods of one machine share it; there is no second machine to try it on"
        return warned(CHECK, reference.path, text, "", "Run it again once there are two machines.")
    return passed(CHECK, reference.path, f"{name}: pods of two machines share it")


def _claim(name: str, reference: Reference) -> Json:
    spec = {
        "accessModes": [SHARED],
        "resources": {"requests": {"storage": "1Gi"}},
        **({"storageClassName": reference.name} if reference.name else {}),
    }
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": spec}


def _why_open(pod: Pod | None) -> str:
    """Return why a pod has not ended, from its conditions; empty if it has."""
    if pod is None or pod.ended:
        return ""
    conditions = pod.body.get("status", {}).get("conditions") or []
    waits = [
        str(condition["message"])
        for condition in conditions
        if condition.get("status") == "False" and condition.get("message")
    ]
    return waits[0] if waits else "it has not started in time"
