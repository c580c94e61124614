"""Values of a chart in what installs it: objects of Flux, Argo CD and k3s, ConfigMaps, and lists of releases."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from soperator_pulumi.convert.set_values import set_keys, value_at, with_value
from soperator_pulumi.convert.yaml_tree import Leaf, Section, Tree, leaves_of, overlaid, read, relabelled

_FLUX = "helm.toolkit.fluxcd.io"
_ARGO = "argoproj.io"
_K3S = "helm.cattle.io"
_LISTS = (("releases",), ("helmCharts",), ("experimental", "deploy", "vcluster", "helm"))
"""Lists of releases in files of helmfile, kustomize and vcluster."""
_FLEET = "helm"
"""The only release in a file of Fleet, and what a target has in its place."""
_VALUES_FILE = "values.yaml"
_FLUX_SOURCES = "valuesFrom"
_VALUES_ELSEWHERE = (
    "valuesFile",
    "valuesFiles",
    "valuesFrom",
    "additionalValuesFiles",
    "valuesTemplate",
    "setTemplate",
    "secrets",
)
"""Keys of a release, of helmfile, kustomize, and Fleet, with values that this importer does not lay over the others."""
_LAID_OVER = "HelmChartConfig"
"""Kind of the object whose values k3s lays over those of the HelmChart of its name and namespace."""

Objects = Mapping[tuple[str, str], Sequence[Section]]
"""Objects of the input by kind and name."""


@dataclass(frozen=True)
class WrappedValues:
    """Values of a chart, with the object around them."""

    tree: Tree | None
    """The values, as their own document; None if the object has none."""
    path: str
    """Prefix of the paths of the values."""
    chart: str
    version: str
    others: Sequence[Leaf]
    """The rest of the object."""
    overruled: Sequence[Leaf] = ()
    """Values that other values of the release replace."""
    elsewhere: Sequence[Leaf] = ()
    """References to values that are not in the input."""
    texts: Sequence[Leaf] = ()
    """Texts that hold values."""


@dataclass
class _Layers:
    """Values of a release, in the order in which later ones overrule earlier ones."""

    tree: Tree | None = None
    used: set[Leaf] = field(default_factory=set)
    """Leaves of the object that are values."""
    texts: list[Leaf] = field(default_factory=list)
    """Texts that hold values."""
    overruled: list[Leaf] = field(default_factory=list)
    elsewhere: list[Leaf] = field(default_factory=list)

    def lay(self, tree: Tree | None) -> None:
        """Lay values over the earlier ones."""
        if isinstance(tree, Mapping):
            self._replace(overlaid(self.tree, tree))

    def lay_set(self, entry: Section, value: object, where: str) -> None:
        """Lay one value over the earlier ones, at the name of an entry with `name`, as `helm --set` does."""
        keys = set_keys(entry.at("name").text(), where)
        leaves = entry.leaves()
        self._replace(with_value(self.tree, keys, value, where, leaves[0].line))
        self.texts += leaves

    def _replace(self, tree: Tree | None) -> None:
        before = list(leaves_of(self.tree))
        self.tree = tree
        left = {*leaves_of(tree)}
        self.overruled += [leaf for leaf in before if leaf not in left]

    def lay_mapping(self, place: Section, path: str) -> None:
        """Lay values that are a mapping of the object."""
        if isinstance(place.tree, Mapping):
            self.used.update(place.leaves())
            self.lay(relabelled(place.tree, path, _depth(place.tree)))

    def lay_text(self, place: Section, path: str, name: str) -> None:
        """Lay values that are a text of the object."""
        if place.text() and isinstance(place.tree, Leaf):
            self.texts.append(place.tree)
            for tree in read(place.text(), name, path, first_line=place.tree.line)[:1]:
                self.lay(tree)


def is_wrapper(root: Section) -> bool:
    """Return True for an object that holds values of a chart."""
    group, kind = root.at("apiVersion").text().partition("/")[0], root.at("kind").text()
    kinds = {_FLUX: {"HelmRelease"}, _ARGO: {"Application", "ApplicationSet"}, _K3S: {"HelmChart", _LAID_OVER}}
    return kind in kinds.get(group, ())


def unwrapped(root: Section, path: str, name: str, objects: Objects) -> list[WrappedValues]:
    """Return the values in an object, with the paths of their places; none if another object takes them.

    Args:
        root: The object.
        path: Its name in paths: `HelmRelease/slurm`.
        name: Name of the file in errors.
        objects: Objects of the input.
    """
    kind, named = root.at("kind").text(), root.at("metadata", "name").text()
    if kind == "HelmRelease":
        return [_of_flux(root, path, name, objects)]
    if kind == "HelmChart":
        over = _found(objects, _LAID_OVER, named, _namespace(root))
        return [_of_k3s([root, over] if over else [root], name)]
    if kind == _LAID_OVER:
        return [] if ("HelmChart", named) in objects else [_of_k3s([root], name)]
    spec = root.at("spec", "template", "spec") if kind == "ApplicationSet" else root.at("spec")
    sources = [spec.at("source")] if spec.at("source") else spec.at("sources").items()
    found = [_of_argo(root, place, path, name) for place in sources if place.at("helm") or place.at("chart")]
    return found or [WrappedValues(None, path, "", "", root.leaves())]


def listed_releases(root: Section, name: str) -> list[tuple[Section, WrappedValues]]:
    """Return the releases in a file that has some, with their entries; none for another file."""
    entries = [*(entry for keys in _LISTS for entry in root.at(*keys).items()), root.at(_FLEET)]
    return [(entry, _of_list(entry, name)) for entry in entries]


def values_of_targets(root: Section) -> list[Leaf]:
    """Return the values, and references to values, that a file of Fleet lays over the others for single targets.

    https://fleet.rancher.io/ref-fleet-yaml
    """
    targets = [target.at(_FLEET) for target in root.at("targetCustomizations").items()]
    return [leaf for helm in targets for key in ("values", *_VALUES_ELSEWHERE) for leaf in helm.at(key).leaves()]


def config_map_values(root: Section, path: str, name: str) -> WrappedValues | None:
    """Return the values in a ConfigMap; None if it holds none."""
    layers = _Layers()
    layers.lay_text(root.at("data", _VALUES_FILE), f"{path}, data.{_VALUES_FILE}: ", name)
    if layers.tree is None:
        return None
    return _whole(layers, root, f"{path}, data.{_VALUES_FILE}: ", "", "")


def _namespace(root: Section) -> str:
    return root.at("metadata", "namespace").text()


def _found(objects: Objects, kind: str, name: str, namespace: str) -> Section:
    """Return an object of the input, or an empty place. A namespace that is not written may be any."""
    named = [*reversed(objects.get((kind, name), ()))]
    near = [root for root in named if _namespace(root) == namespace]
    near += [root for root in named if not (namespace and _namespace(root))]
    return next(iter(near), Section(None))


def _of_flux(root: Section, path: str, name: str, objects: Objects) -> WrappedValues:
    spec = root.at("spec")
    layers = _Layers()
    for reference in spec.at(_FLUX_SOURCES).items():
        key, source = reference.at("valuesKey").text() or _VALUES_FILE, reference.at("name").text()
        text = _found(objects, "ConfigMap", source, _namespace(root)).at("data", key)
        if reference.at("kind").text() == "ConfigMap" and text.text() and not reference.at("targetPath"):
            layers.lay_text(text, f"ConfigMap/{source}, data.{key}: ", name)
        else:
            layers.elsewhere += reference.leaves()
    here = f"{path}, spec.values: "
    layers.lay_mapping(spec.at("values"), here)
    chart = spec.at("chart", "spec")
    repository = spec.at("chartRef", "name").text()
    there = spec.at("chartRef", "namespace").text() or _namespace(root)
    tag = _found(objects, "OCIRepository", repository, there).at("spec", "ref", "tag").text()
    named = chart.at("chart").text() or repository
    return _whole(layers, root, here, named, chart.at("version").text() or tag)


def _of_argo(root: Section, source: Section, path: str, name: str) -> WrappedValues:
    helm = source.at("helm")
    layers = _Layers()
    layers.elsewhere += [*helm.at("valueFiles").leaves(), *helm.at("fileParameters").leaves()]
    here = f"{path}, {helm.path.rpartition(': ')[2]}"
    layers.lay_text(helm.at("values"), f"{here}.values: ", name)
    layers.lay_mapping(helm.at("valuesObject"), f"{here}.valuesObject: ")
    for index, entry in enumerate(helm.at("parameters").items()):
        value = value_at(entry.at("value"), lists=True, as_text=entry.at("forceString").is_on())
        layers.lay_set(entry, value, f"{here}.parameters[{index}]")
    chart = source.at("chart").text() or source.at("path").text()
    return _whole(layers, root, f"{here}: ", chart, source.at("targetRevision").text())


def _of_k3s(parts: Sequence[Section], name: str) -> WrappedValues:
    """Return the values of an object with those of the objects after it laid over them."""
    layers = _Layers()
    paths = [f"{part.path.removesuffix(': ')}, spec.valuesContent: " for part in parts]
    for part, path in zip(parts, paths, strict=True):
        spec = part.at("spec")
        layers.lay_text(spec.at("valuesContent"), path, name)
        layers.elsewhere += [*spec.at("set").leaves(), *spec.at("valuesSecrets").leaves()]
    spec = parts[0].at("spec")
    return _whole(layers, parts[0], paths[0], spec.at("chart").text(), spec.at("version").text())


def _of_list(entry: Section, name: str) -> WrappedValues:
    values = entry.at("values")
    layers = _Layers()
    layers.elsewhere += [leaf for key in _VALUES_ELSEWHERE for leaf in entry.at(key).leaves()]
    layers.elsewhere += [leaf for place in values.items() if place.text() for leaf in place.leaves()]  # names of files
    layers.lay_text(values, f"{values.path}: ", name)
    for place in (values, *values.items(), entry.at("valuesInline")):
        layers.lay_mapping(place, f"{place.path}: ")
    _lay_sets(layers, entry)
    chart = entry.at("chart", "name").text() or entry.at("chart").text() or entry.at("name").text()
    version = entry.at("version").text() or entry.at("chart", "version").text()
    return _whole(layers, entry, f"{entry.path}: ", chart, version)


def _lay_sets(layers: _Layers, entry: Section) -> None:
    """Lay the values of a release of helmfile that are given by name: `set`, and then `setString`, as helm does.

    An entry with a file or a template has no value here.
    """
    for key in ("set", "setString"):
        as_text = key == "setString"
        for item in entry.at(key).items():
            if item.at("values").items():
                parts = [value_at(part, lists=False, as_text=as_text) for part in item.at("values").items()]
                layers.lay_set(item, parts, item.path)
            elif item.at("value").tree is not None:
                layers.lay_set(item, value_at(item.at("value"), lists=False, as_text=as_text), item.path)
            else:
                layers.elsewhere += item.leaves()


def _whole(layers: _Layers, root: Section, path: str, chart: str, version: str) -> WrappedValues:
    apart = {*layers.used, *layers.texts, *layers.elsewhere}
    others = [leaf for leaf in root.leaves() if leaf not in apart]
    last = chart.rstrip("/").rpartition("/")[2]
    return WrappedValues(layers.tree, path, last, version, others, layers.overruled, layers.elsewhere, layers.texts)


def _depth(tree: Tree) -> int:
    """Return the number of keys from the document to a place."""
    below = 0
    while not isinstance(tree, Leaf):
        tree = tree[0] if isinstance(tree, list) else next(iter(tree.values()))
        below += 1
    return len(tree.keys) - below
