"""Values of a chart in what installs it: objects of Flux, Argo CD, Fleet and k3s, ConfigMaps, and lists of releases."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from soperator_pulumi.convert.fleet import is_bundle, values_of_bundle
from soperator_pulumi.convert.inputs import Inputs, namespace_of
from soperator_pulumi.convert.set_values import WORDS, set_keys, set_value, value_at, with_value
from soperator_pulumi.convert.yaml_tree import Leaf, Section, Tree, leaves_of, overlaid, read, relabelled

_FLUX = "helm.toolkit.fluxcd.io"
_ARGO = "argoproj.io"
_K3S = "helm.cattle.io"
_LISTS = (("releases",), ("helmCharts",), ("experimental", "deploy", "vcluster", "helm"))
"""Lists of releases in files of helmfile, kustomize and vcluster."""
_FLEET = "helm"
"""The only release in a file of Fleet, and what a target has in its place."""
_VALUES_FILE = "values.yaml"
_TEMPLATES = ("valuesTemplate", "setTemplate")
"""Keys of a release of helmfile whose values are templates."""
_TEMPLATE_FILE = ".gotmpl"
"""End of the names of files of values that are templates of helmfile."""
_OF_HELMFILE = "a template of helmfile"
_LAID_OVER = "HelmChartConfig"
"""Kind of the object whose values k3s lays over those of the HelmChart of its name and namespace."""

PATCHES = "patches of the chart's objects are not read: write what they change into the values"
"""Reason for changes that a tool makes to what the chart renders."""

_WRITE = "write its values into the file that you convert"
_IN_SECRET = f"a Secret holds these values, and Secrets are not read: {_WRITE}"


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
    elsewhere: Mapping[Leaf, str] = field(default_factory=dict)
    """References to values that are not in the input, with the reasons and what to do."""
    texts: Sequence[Leaf] = ()
    """Texts that hold values, and references to values that are in the input."""
    files: Sequence[str] = ()
    """Paths of the files of values."""


@dataclass
class _Layers:
    """Values of a release, in the order in which later ones overrule earlier ones."""

    inputs: Inputs
    tree: Tree | None = None
    used: set[Leaf] = field(default_factory=set)
    """Leaves of the object that are values."""
    texts: list[Leaf] = field(default_factory=list)
    """Texts that hold values, and references to values."""
    overruled: list[Leaf] = field(default_factory=list)
    elsewhere: dict[Leaf, str] = field(default_factory=dict)
    files: list[str] = field(default_factory=list)

    def lay(self, tree: Tree | None) -> None:
        """Lay values over the earlier ones."""
        if isinstance(tree, Mapping):
            self._replace(overlaid(self.tree, tree))

    def lay_set(self, entry: Section, name: str, value: object, where: str) -> None:
        """Lay one value over the earlier ones, at a name such as `a.b[0]`, as `helm --set` does."""
        leaves = entry.leaves()
        self._replace(with_value(self.tree, set_keys(name, where), value, where, leaves[0].line))
        self.texts += leaves

    def lay_file(self, reference: Section) -> None:
        """Lay the values of a file, which a release names by its path, over the earlier ones."""
        path = self.inputs.path_of(reference.text())
        if path:
            self.files.append(path)
            self.texts += reference.leaves()
            self.lay(self.inputs.files[path].tree)
        elif reference.text():
            file = reference.text().rpartition("/")[2].partition("?")[0]
            if file.endswith(_TEMPLATE_FILE):
                self.lack(reference, f"{file} is {_OF_HELMFILE}: {_WRITE}")
            elif "{{" in file:
                self.lack(reference, f"the name {file} is a template: write the name itself, and convert the file too")
            else:
                self.lack(reference, f"the file {file} is not in the input: convert it together with this one")

    def lay_config_map(self, name: str, key: str, namespace: str, reference: Section) -> None:
        """Lay the values of a ConfigMap, which a release names, over the earlier ones."""
        text = self.inputs.object("ConfigMap", name, namespace).at("data", key or _VALUES_FILE)
        if text.text():
            self.texts += reference.leaves()
            self.lay_text(text, f"ConfigMap/{name}, data.{key or _VALUES_FILE}: ", f"ConfigMap/{name}")
        else:
            self.lack(reference, f"the ConfigMap {name} with {key or _VALUES_FILE} is not in the input: convert it too")

    def lack(self, place: Section, why: str) -> None:
        """Note that values are not in the input."""
        self.elsewhere.update(dict.fromkeys(place.leaves(), why))

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

    def unused(self, place: Section) -> None:
        """Note that values are not read, as others take their place."""
        self.overruled += place.leaves()


def is_wrapper(root: Section) -> bool:
    """Return True for an object that holds values of a chart."""
    group, kind = root.at("apiVersion").text().partition("/")[0], root.at("kind").text()
    kinds = {_FLUX: {"HelmRelease"}, _ARGO: {"Application", "ApplicationSet"}, _K3S: {"HelmChart", _LAID_OVER}}
    return kind in kinds.get(group, ()) or is_bundle(root)


def unwrapped(root: Section, path: str, name: str, inputs: Inputs) -> list[WrappedValues]:
    """Return the values in an object, with the paths of their places; none if another object takes them.

    Args:
        root: The object.
        path: Its name in paths: `HelmRelease/slurm`.
        name: Name of the file in errors.
        inputs: Objects and files of the input.
    """
    kind, named = root.at("kind").text(), root.at("metadata", "name").text()
    if kind == "HelmRelease":
        return [_of_flux(root, path, inputs)]
    if kind == "HelmChart":
        over = inputs.object(_LAID_OVER, named, namespace_of(root))
        return [_of_k3s([root, over] if over else [root], name, inputs)]
    if kind == _LAID_OVER:
        return [] if ("HelmChart", named) in inputs.objects else [_of_k3s([root], name, inputs)]
    if is_bundle(root):
        return [_of_bundle(root, path, name, inputs)]
    spec = root.at("spec", "template", "spec") if kind == "ApplicationSet" else root.at("spec")
    sources = [spec.at("source")] if spec.at("source") else spec.at("sources").items()
    found = [_of_argo(root, place, path, name, inputs) for place in sources if place.at("helm") or place.at("chart")]
    return found or [WrappedValues(None, path, "", "", root.leaves())]


def listed_releases(root: Section, name: str, inputs: Inputs) -> list[tuple[Section, WrappedValues]]:
    """Return the releases in a file that has some, with their entries; none for another file."""
    found = [(entry, _of_list(entry, name, inputs)) for keys in _LISTS for entry in root.at(*keys).items()]
    fleet = root.at(_FLEET)
    return [*found, (fleet, _of_fleet(fleet, fleet, f"{fleet.path}: ", inputs))]


def values_of_targets(root: Section) -> list[Leaf]:
    """Return the values, and references to values, that Fleet lays over the others for single targets.

    https://fleet.rancher.io/ref-fleet-yaml
    """
    targets = [*root.at("targetCustomizations").items(), *root.at("spec", "targets").items()]
    keys = ("values", "valuesFiles", "valuesFrom")
    return [leaf for target in targets for key in keys for leaf in target.at(_FLEET, key).leaves()]


def config_map_values(root: Section, path: str, name: str) -> WrappedValues | None:
    """Return the values in a ConfigMap; None if it holds none."""
    layers = _Layers(Inputs({}))
    layers.lay_text(root.at("data", _VALUES_FILE), f"{path}, data.{_VALUES_FILE}: ", name)
    if layers.tree is None:
        return None
    return _whole(layers, root, f"{path}, data.{_VALUES_FILE}: ", "", "")


def _of_flux(root: Section, path: str, inputs: Inputs) -> WrappedValues:
    """Return the values of a HelmRelease: files of its chart's source, `valuesFrom`, and `values`.

    https://fluxcd.io/flux/components/helm/helmreleases/
    """
    spec = root.at("spec")
    chart = spec.at("chart", "spec")
    layers = _Layers(inputs)
    for place in (chart.at("valuesFile"), *chart.at("valuesFiles").items()):
        layers.lay_file(place)
    for reference in spec.at("valuesFrom").items():
        source, target = reference.at("name").text(), reference.at("targetPath").text()
        if reference.at("kind").text() != "ConfigMap":
            layers.lack(reference, _IN_SECRET)
        elif target:
            _lay_target(layers, root, reference)
        else:
            layers.lay_config_map(source, reference.at("valuesKey").text(), namespace_of(root), reference)
    here = f"{path}, spec.values: "
    layers.lay_mapping(spec.at("values"), here)
    layers.lack(spec.at("postRenderers"), PATCHES)
    repository = spec.at("chartRef", "name").text()
    there = spec.at("chartRef", "namespace").text() or namespace_of(root)
    tag = inputs.object("OCIRepository", repository, there).at("spec", "ref", "tag").text()
    named = chart.at("chart").text() or repository
    return _whole(layers, root, here, named, chart.at("version").text() or tag)


def _lay_target(layers: _Layers, root: Section, reference: Section) -> None:
    """Lay one value of a ConfigMap at a name, as Flux does for `targetPath`: a value in quotes stays a text."""
    source, key = reference.at("name").text(), reference.at("valuesKey").text() or _VALUES_FILE
    place = layers.inputs.object("ConfigMap", source, namespace_of(root)).at("data", key)
    text = place.text()
    if not text or "," in text:
        layers.lack(reference, f"the value of {key} in the ConfigMap {source} is not read: {_WRITE}")
        return
    is_quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "\"'"
    value = set_value(text[1:-1] if is_quoted else text, as_text=is_quoted)
    layers.lay_set(reference, reference.at("targetPath").text(), value, f"ConfigMap/{source}, data.{key}")
    layers.texts += place.leaves()


def _of_argo(root: Section, source: Section, path: str, name: str, inputs: Inputs) -> WrappedValues:
    """Return the values of a source: those of its files, then `valuesObject`, or else `values`, then parameters.

    https://argo-cd.readthedocs.io/en/stable/user-guide/helm/
    """
    helm = source.at("helm")
    layers = _Layers(inputs)
    layers.lack(helm.at("fileParameters"), f"the content of a file is not read as a value: {_WRITE}")
    for place in helm.at("valueFiles").items():
        layers.lay_file(place)
    here = f"{path}, {helm.path.rpartition(': ')[2]}"
    if helm.at("valuesObject"):
        layers.unused(helm.at("values"))
        layers.lay_mapping(helm.at("valuesObject"), f"{here}.valuesObject: ")
    else:
        layers.lay_text(helm.at("values"), f"{here}.values: ", name)
    for index, entry in enumerate(helm.at("parameters").items()):
        value = value_at(entry.at("value"), lists=True, as_text=entry.at("forceString").is_on())
        layers.lay_set(entry, entry.at("name").text(), value, f"{here}.parameters[{index}]")
    chart = source.at("chart").text() or source.at("path").text()
    return _whole(layers, root, f"{here}: ", chart, source.at("targetRevision").text())


def _of_k3s(parts: Sequence[Section], name: str, inputs: Inputs) -> WrappedValues:
    """Return the values of an object with those of the objects after it, and `set` of all, laid over them.

    https://docs.k3s.io/add-ons/helm
    """
    layers = _Layers(inputs)
    for part in parts:
        spec, path = part.at("spec"), part.path.removesuffix(": ")
        layers.lay_text(spec.at("valuesContent"), f"{path}, spec.valuesContent: ", name)
        layers.lay_mapping(spec.at("values"), f"{path}, spec.values: ")
        layers.lack(spec.at("valuesSecrets"), _IN_SECRET)
    for part in parts:
        for key, place in sorted(part.at("spec", "set").entries()):
            if isinstance(place.tree, Leaf):
                # Texts stay texts, but for true, false and null: the controller gives the others to --set-string.
                value = place.plain()
                if not isinstance(value, str) or value.lower() in WORDS:
                    value = set_value(place.text())
                layers.lay_set(place, key, value, f"{part.path.removesuffix(': ')}, spec.set")
    path = f"{parts[0].path.removesuffix(': ')}, spec.valuesContent: "
    spec = parts[0].at("spec")
    return _whole(layers, parts[0], path, spec.at("chart").text(), spec.at("version").text())


def _of_bundle(root: Section, path: str, name: str, inputs: Inputs) -> WrappedValues:
    """Return the values of a Bundle, whose files are those in it, and those of the input."""
    helm = root.at("spec", _FLEET)
    inside = values_of_bundle(root, path, name)
    known = replace(inputs, files={**inputs.files, **inside.files})
    found = _of_fleet(root, helm, f"{path}, spec.helm: ", known, inside.own)
    return replace(found, chart=inside.chart or found.chart, version=found.version or inside.version)


def _of_fleet(root: Section, helm: Section, path: str, inputs: Inputs, own: Section | None = None) -> WrappedValues:
    """Return the values of a release of Fleet, which lays `valuesFiles` over `values`, and `valuesFrom` over both.

    https://fleet.rancher.io/ref-fleet-yaml

    Args:
        root: What holds the release.
        helm: The release.
        path: Prefix of the paths of its values.
        inputs: Objects and files of the input.
        own: Defaults of a chart that is in the input.
    """
    layers = _Layers(inputs)
    layers.lay(own.tree if own is not None else None)
    layers.lay_mapping(helm.at("values"), f"{helm.at('values').path}: ")
    for place in helm.at("valuesFiles").items():
        layers.lay_file(place)
    for reference in helm.at("valuesFrom").items():
        of_map = reference.at("configMapKeyRef")
        if of_map:
            layers.lay_config_map(
                of_map.at("name").text(), of_map.at("key").text(), of_map.at("namespace").text(), of_map
            )
        layers.lack(reference.at("secretKeyRef"), _IN_SECRET)
    return _whole(layers, root, path, _chart_of(helm), helm.at("version").text())


def _of_list(entry: Section, name: str, inputs: Inputs) -> WrappedValues:
    """Return the values of a release of helmfile, kustomize or vcluster.

    https://helmfile.readthedocs.io/en/stable/,
    https://kubectl.docs.kubernetes.io/references/kustomize/builtins/#_helmchartinflationgenerator_
    """
    values = entry.at("values")
    layers = _Layers(inputs)
    merge = entry.at("valuesMerge").text()
    inline = entry.at("valuesInline")
    if merge == "merge":
        layers.lay_mapping(inline, f"{inline.path}: ")
    if merge == "replace" and inline:
        layers.unused(entry.at("valuesFile"))
    else:
        layers.lay_file(entry.at("valuesFile"))
    layers.lay_text(values, f"{values.path}: ", name)
    for place in (values, *values.items()):
        layers.lay_file(place) if place.text() and place is not values else layers.lay_mapping(place, f"{place.path}: ")
    if merge != "merge":
        layers.lay_mapping(inline, f"{inline.path}: ")
    for place in entry.at("additionalValuesFiles").items():
        layers.lay_file(place)
    layers.lack(entry.at("secrets"), f"the file is encrypted: {_WRITE}")
    for key in ("strategicMergePatches", "jsonPatches", "transformers"):
        layers.lack(entry.at(key), PATCHES)
    for key in _TEMPLATES:
        layers.lack(entry.at(key), f"{_OF_HELMFILE}: {_WRITE}")
    _lay_sets(layers, entry)
    version = entry.at("version").text() or entry.at("chart", "version").text()
    return _whole(layers, entry, f"{entry.path}: ", _chart_of(entry), version)


def _chart_of(entry: Section) -> str:
    return entry.at("chart", "name").text() or entry.at("chart").text() or entry.at("name").text()


def _lay_sets(layers: _Layers, entry: Section) -> None:
    """Lay the values of a release of helmfile that are given by name: `set`, and then `setString`, as helm does.

    An entry with a file or a template has no value here.
    """
    for key in ("set", "setString"):
        as_text = key == "setString"
        for item in entry.at(key).items():
            name = item.at("name").text()
            if item.at("values").items():
                parts = [value_at(part, lists=False, as_text=as_text) for part in item.at("values").items()]
                layers.lay_set(item, name, parts, item.path)
            elif item.at("value").tree is not None:
                layers.lay_set(item, name, value_at(item.at("value"), lists=False, as_text=as_text), item.path)
            else:
                layers.lack(item, f"the content of a file is not read as a value: {_WRITE}")


def _whole(layers: _Layers, root: Section, path: str, chart: str, version: str) -> WrappedValues:
    apart = {*layers.used, *layers.texts, *layers.elsewhere, *layers.overruled}
    others = [leaf for leaf in root.leaves() if leaf not in apart]
    last = chart.rstrip("/").rpartition("/")[2]
    return WrappedValues(
        layers.tree, path, last, version, others, layers.overruled, layers.elsewhere, layers.texts, layers.files
    )


def _depth(tree: Tree) -> int:
    """Return the number of keys from the document to a place."""
    below = 0
    while not isinstance(tree, Leaf):
        tree = tree[0] if isinstance(tree, list) else next(iter(tree.values()))
        below += 1
    return len(tree.keys) - below
