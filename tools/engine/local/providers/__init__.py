"""Choice of a resource's provider by its type."""

from tools.console import UserError
from tools.engine.local.helm.release_inputs import RELEASE_TYPE
from tools.engine.local.providers.dynamic import DynamicProvider
from tools.engine.local.providers.helm_release import HelmReleaseProvider
from tools.engine.local.providers.kubernetes_provider import KubernetesProvider, KubernetesSettings, settings_of
from tools.engine.local.providers.local_provider import LocalProvider, Progress, UnconfiguredProvider
from tools.engine.local.providers.plugin_provider import PluginProvider
from tools.engine.local.providers.random import RandomProvider
from tools.engine.local.state import Resource
from tools.engine.project import Project
from tools.engine.protocol import Target, unsupported
from tools.engine.values import Properties, has_unknown, plain_map

PROVIDER_TYPE = "pulumi:providers:"
_KUBERNETES = "kubernetes"


class Providers:
    """Providers of a run: one per package, and one per explicit provider of the program."""

    def __init__(self, project: Project, target: Target, identity: str, progress: Progress) -> None:
        self._project = project
        self._target = target
        self._identity = identity
        self._progress = progress
        self._loaded: dict[str, LocalProvider] = {}

    def check(self, resource_type: str, inputs: Properties) -> None:
        """Refuse an explicit provider of an unsupported package or with unsupported inputs.

        Raises:
            UserError: The package or the inputs, by name.
        """
        package = resource_type.removeprefix(PROVIDER_TYPE)
        if package != _KUBERNETES:
            raise UserError(unsupported(f"an explicit provider of package {package!r}: not supported"))
        settings_of(plain_map(inputs))

    def configure(self, reference: str, inputs: Properties) -> None:
        """Create the explicit provider of a reference."""
        plain = plain_map(inputs)
        self._loaded[reference] = UnconfiguredProvider() if has_unknown(plain) else self._kubernetes(settings_of(plain))

    def of(self, resource: Resource, explicit: Resource | None) -> LocalProvider:
        """Return the provider of a resource: the explicit one, or the default of its package."""
        if explicit is not None:
            if resource.provider not in self._loaded:
                self.configure(resource.provider, explicit.inputs)
            found = self._loaded[resource.provider]
        else:
            found = self._of_package(resource.type)
        if resource.type == RELEASE_TYPE and isinstance(found, KubernetesProvider):
            return HelmReleaseProvider(found, self._project.program, self._identity, self._progress)
        return found

    def plugin_of(self, resource_type: str) -> PluginProvider:
        """Return the plugin of a component's package.

        Raises:
            UserError: The project names no plugin for it.
        """
        found = self._of_package(resource_type)
        if not isinstance(found, PluginProvider):
            raise UserError(unsupported(f"type {resource_type}: a component of another package: not supported"))
        return found

    def _of_package(self, resource_type: str) -> LocalProvider:
        package = resource_type.partition(":")[0]
        if package not in self._loaded:
            self._loaded[package] = self._default(package, resource_type)
        return self._loaded[package]

    def _default(self, package: str, resource_type: str) -> LocalProvider:
        match package:
            case "kubernetes":
                prefix = f"{_KUBERNETES}:"
                config = self._project.config
                given = {k.removeprefix(prefix): v for k, v in config.items() if k.startswith(prefix)}
                return self._kubernetes(settings_of(given))
            case "random":
                return RandomProvider()
            case "pulumi-python":
                return DynamicProvider(self._project, self._target, self._progress)
            case _ if package in self._project.plugins:
                folder = self._project.plugins[package]
                return PluginProvider(package, folder, self._project, self._target, self._progress)
            case _:
                raise UserError(unsupported(f"type {resource_type}: not supported"))

    def _kubernetes(self, settings: KubernetesSettings) -> KubernetesProvider:
        return KubernetesProvider(settings, self._target.environment, self._identity, self._progress)

    def warm_up(self, resources: list[Resource]) -> None:
        """Start the server for the state's dynamic resources ahead of its use."""
        dynamic = [r for r in resources if r.type.startswith("pulumi-python:")]
        if dynamic and isinstance(provider := self.of(dynamic[0], None), DynamicProvider):
            known = {str(serialized.value): None for r in dynamic if (serialized := r.inputs.get("__provider"))}
            provider.start(known)

    async def close(self) -> None:
        """Close connections and end processes."""
        for provider in self._loaded.values():
            await provider.close()
