"""Images: every kind of machine that needs one can pull it and run it on its architecture."""

from collections.abc import Iterator, Mapping, Sequence

from soperator_pulumi.kube.pods import Pod
from soperator_pulumi.kube.verbs import Json
from soperator_pulumi.operations.preflight.admitting_machines import kind_of, machines_for
from soperator_pulumi.operations.preflight.cluster_probe import ClusterProbe, ProbePlace, harmless, probe_pod
from soperator_pulumi.operations.preflight.diagnosis import Diagnosis, passed, refused, warned
from soperator_pulumi.operations.preflight.planned import PlannedPods

CHECK = "images"

_NOT_PULLED = ("ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName", "ImageInspectError")
_OTHER_ARCHITECTURE = "exec format error"


def image_probes(place: ProbePlace, every: Sequence[PlannedPods], machines: Sequence[Json]) -> list[ClusterProbe]:
    """Return a probe for every kind of machine, with one container per image."""
    by_kind: dict[str, tuple[Json, dict[str, Json], PlannedPods]] = {}
    for pods in every:
        for machine in machines_for(pods, machines):
            _, images, _ = by_kind.setdefault(kind_of(machine), (machine, {}, pods))
            for container in pods.containers:
                images.setdefault(container["image"], container)
    return [
        _probe(place.name(f"images-{number}"), machine, images, like)
        for number, (machine, images, like) in enumerate(by_kind.values())
    ]


def _probe(name: str, machine: Json, images: Mapping[str, Json], like: PlannedPods) -> ClusterProbe:
    where = str(machine["metadata"]["name"])
    containers = [
        {
            "name": f"image-{number}",
            "image": image,
            "imagePullPolicy": given.get("imagePullPolicy"),
            # A program that is not in the image fails after the pull, and that is enough.
            "command": [given["command"][0] if given.get("command") else "/bin/true", "--version"],
            # As root without any right: programs of the worker's image are root's alone.
            "securityContext": {**harmless(), "runAsUser": 0, "runAsGroup": 0, "runAsNonRoot": False},
        }
        for number, (image, given) in enumerate(images.items())
    ]
    place = f"machine {where}"

    def judge(found: Mapping[str, Pod]) -> Iterator[Diagnosis]:
        if name in found:
            yield from pull_findings(place, found[name].body)
        else:
            yield warned(CHECK, place, "not checked: the probe's pod was refused or deleted", "", "Run it again.")

    return ClusterProbe(CHECK, place, [probe_pod(name, containers, like.spec, where)], [name], judge)


def pull_findings(place: str, pod: Json) -> Iterator[Diagnosis]:
    """Yield images that were not pulled or cannot run, from a pod with one container per image."""
    statuses = {
        container_status["name"]: container_status
        for container_status in pod.get("status", {}).get("containerStatuses") or []
    }
    faults = []
    for container in pod["spec"]["containers"]:
        status = statuses.get(container["name"], {})
        if fault := _fault(place, container["image"], status):
            faults.append(fault)
    yield from faults
    if not faults:
        yield passed(CHECK, place, f"{len(pod['spec']['containers'])} images are pulled and run")


def _fault(place: str, image: str, status: Json) -> Diagnosis | None:
    state = status.get("state", {})
    waiting, ended = state.get("waiting") or {}, state.get("terminated") or {}
    if waiting.get("reason") in _NOT_PULLED:
        text = f"{image} is not pulled: {waiting.get('message') or waiting['reason']}".rstrip(".")
        cure = "Check the name (images of the spec), images.pull_secrets, and that the machine reaches the registry."
        return refused(CHECK, place, text, "an image that the machine can pull", cure)
    words = f"{ended.get('message', '')} {waiting.get('message', '')}"
    if _OTHER_ARCHITECTURE in words:
        cure = "Push an image of that architecture too, or choose other machines by node_selector."
        return refused(CHECK, place, f"{image} is of another architecture", "an image of the machine's", cure)
    if not (status.get("imageID") or ended or "running" in state):
        return warned(CHECK, place, f"{image} is still being pulled", "", "Run it again, with a longer --timeout.")
    return None
