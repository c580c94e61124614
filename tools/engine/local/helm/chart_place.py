"""Location of a chart: a folder or file, a repository, or a container registry."""

from dataclasses import dataclass
from typing import Any

from tools.engine.values import PlainMap

_REGISTRY = "oci://"


@dataclass(frozen=True, kw_only=True)
class ChartPlace:
    """A chart and where to get it.

    Attributes:
        chart: Name, path or address.
        repository: Address of the repository that has the chart; empty for none.
        flags: Further flags of helm: version, certificates.
        username: Name at the repository or registry; empty for none.
        password: Password there.
    """

    chart: str
    repository: str
    flags: tuple[str, ...]
    username: str = ""
    password: str = ""

    @property
    def registry(self) -> str:
        """Host of the chart's registry; empty if there is none."""
        return self.chart.removeprefix(_REGISTRY).partition("/")[0] if self.chart.startswith(_REGISTRY) else ""

    @property
    def needs_login(self) -> bool:
        """True if a name and a password are given for a location that accepts them."""
        return bool(self.username and self.password and (self.registry or self.repository))

    @property
    def words(self) -> list[str]:
        """Arguments of helm that locate the chart, if no login is needed."""
        return [self.chart, *(["--repo", self.repository] if self.repository else []), *self.flags]


def chart_place(inputs: PlainMap) -> ChartPlace:
    """Return the chart of a release, found by the rules of pulumi-kubernetes."""
    given = inputs.get("repositoryOpts")
    opts: dict[str, Any] = dict(given) if isinstance(given, dict) else {}
    chart, repository = str(inputs["chart"]).strip(), str(opts.get("repo") or "")
    if chart.startswith(_REGISTRY):
        repository = ""
    elif repository and "://" not in repository:
        # A repository that the user has added to helm, by its name.
        chart, repository = (chart if "/" in chart else f"{repository}/{chart}"), ""
    version = str(inputs.get("version") or "").strip() or (">0.0.0-0" if inputs.get("devel") else "")
    files = {"caFile": "--ca-file", "certFile": "--cert-file", "keyFile": "--key-file"}
    flags = [word for key, flag in files.items() if opts.get(key) for word in (flag, str(opts[key]))]
    return ChartPlace(
        chart=chart,
        repository=repository,
        flags=(*flags, *(("--version", version) if version else ())),
        username=str(opts.get("username") or ""),
        password=str(opts.get("password") or ""),
    )
