"""The resource that owns a Secret of configuration files, as `ConfigFiles` owns a ConfigMap.

Pulumi encrypts the files in its state, and never shows them. Previews list only the files and keys that change.
"""

from collections.abc import Mapping, Sequence

import pulumi

from soperator_pulumi.lifecycle.config_files import KNOWN_GOOD, ConfigFilesProvider
from soperator_pulumi.lifecycle.connection import ClusterConnection
from soperator_pulumi.lifecycle.resource import LiveResource
from soperator_pulumi.operations.configuration.desired_files import AfterSync, FilesKind, Reader


class SecretFilesProvider(ConfigFilesProvider):
    """Create, change and delete the Secret."""


class SecretFiles(LiveResource, module="soperator", name="SecretFiles"):
    """A Secret whose files are in effect when the resource is up to date."""

    def __init__(
        self,
        resource_name: str,
        *,
        secret: str,
        cluster: ClusterConnection,
        labels: Mapping[str, str],
        annotations: Mapping[str, str],
        files: Mapping[str, pulumi.Input[str]],
        readers: Sequence[Reader],
        after_sync: AfterSync = AfterSync.NOTHING,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        inputs = {
            "kind": FilesKind.SECRET.value,
            "name": secret,
            "labels": {**labels},
            "annotations": {**annotations},
            "files": pulumi.Output.secret({**files}),
            "readers": [reader.model_dump() for reader in readers],
            "after_sync": after_sync.value,
        }
        encrypted = pulumi.ResourceOptions(additional_secret_outputs=["files", KNOWN_GOOD])
        merged = pulumi.ResourceOptions.merge(opts, encrypted)
        super().__init__(SecretFilesProvider(), resource_name, cluster, inputs, merged)
