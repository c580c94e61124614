"""Containers in jobs: Pyxis in the input becomes `containers`, and the report says what enroot's settings become."""

from collections.abc import Iterable

from soperator_pulumi.convert.conversion import Conversion
from soperator_pulumi.convert.yaml_tree import Leaf, Section

PLUGINS = "SPANK plugins other than the jail's are not supported"
SETTINGS_OF_IMAGES = (
    "settings of the programs that bring images: `containers` has mirrors, authorities, a proxy, and limits of images"
)

_PYXIS = "Pyxis is in use: jobs run in images with its options"
_PLACES = ("/etc/enroot", "/etc/containers")
"""Directories of settings of enroot, and of skopeo and podman."""

_ARGUMENTS = {
    "execute_entrypoint=1": "jobs run an entry point with --container-entrypoint, or PYXIS_CONTAINER_ENTRYPOINT=1",
    "container_scope=job": "named containers stay until their user removes them",
    "sbatch_support=0": "options of sbatch and salloc are those of all steps",
    "use_squashfuse=1": "images are unpacked, not mounted as squashfs files",
}
"""Arguments of Pyxis that change what jobs see."""

_PROXIES = {"http_proxy", "https_proxy", "no_proxy", "all_proxy"}


def put_plug_stack(work: Conversion, text: Section) -> None:
    """Write `containers` if plugstack.conf loads or includes Pyxis, and report every plugin."""
    lines = [line.split() for line in text.text().splitlines() if line.strip() and not line.lstrip().startswith("#")]
    if not lines:
        work.needless(text, "it loads no plugin")
        return
    names = [line[min(1, len(line) - 1)] for line in lines]
    plugins = [(name, line[2:] if "pyxis" in name else []) for name, line in zip(names, lines, strict=True)]
    parts = iter(work.split(text.leaves()[0], [word for name, arguments in plugins for word in (name, *arguments)]))
    for name, arguments in plugins:
        if "pyxis" in name:
            put_pyxis(work, [next(parts)])
        else:
            work.cannot([next(parts)], PLUGINS)
        for argument, part in zip(arguments, parts, strict=False):
            if reason := _ARGUMENTS.get(argument):
                work.cannot([part], reason)
            else:
                work.needless([part], "an argument of Pyxis alone")


def put_pyxis(work: Conversion, origin: Section | Iterable[Leaf]) -> None:
    """Write `containers` in place of Pyxis."""
    work.put(work.stack, "containers", {}, origin, _PYXIS)


def is_of_images(path: str) -> bool:
    """Return True if a mount path holds settings of the programs that bring images."""
    return any(path == place or path.startswith(f"{place}/") for place in _PLACES)


def tell_of_proxies(work: Conversion, environment: Section) -> None:
    """Report proxies in the environment of slurmd."""
    for variable in environment.items():
        if variable.at("name").text().lower() in _PROXIES:
            work.cannot(variable, "containers.proxy is that of images, and node_sets[].environment is that of jobs")
