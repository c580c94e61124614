"""What the providers of all our dynamic resources share.

Their modules and class names are recorded in users' states: they are not renamed.
"""

from collections.abc import Mapping
from typing import Any

from pulumi.dynamic import Config, ConfigureRequest, ResourceProvider
from pulumi.runtime.rpc import UNKNOWN

from soperator_pulumi.lifecycle.connection import access
from soperator_pulumi.lifecycle.kube import Cluster, Kube


class LiveProvider(ResourceProvider):
    """A provider that looks at a live cluster. It captures nothing; the stack's configuration comes by `configure`."""

    serialize_as_secret_always = False

    _config: Config | None = None

    def configure(self, req: ConfigureRequest) -> None:
        """Keep the stack's configuration, in the provider's process."""
        self._config = req.config

    def kube(self, props: Mapping[str, Any], *, deleting: bool = False) -> Kube:
        """Return the cluster of a resource with these inputs or outputs.

        Raises:
            KubernetesError: no cluster can be read from the kubeconfig.
        """
        return Cluster(access(props, self._config, deleting=deleting))


def has_unknown(value: object) -> bool:
    """Whether a value holds something that is not known yet, as in a preview."""
    if isinstance(value, Mapping):
        return any(has_unknown(each) for each in value.values())
    if isinstance(value, (list, tuple)):
        return any(has_unknown(each) for each in value)
    return bool(value == UNKNOWN)
