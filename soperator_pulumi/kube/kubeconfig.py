"""Client settings from a kubeconfig or a pod's service account; no error and no leftover file contains a secret.

The library reads the kubeconfig. Its own errors may quote entries, and the output of exec plugins.
"""

import base64
import os
import re
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

import yaml
from kubernetes import client, config
from kubernetes.config.dateutil import parse_rfc3339
from kubernetes.config.exec_provider import ExecProvider
from kubernetes.config.kube_config import (
    KUBE_CONFIG_DEFAULT_LOCATION,
    ConfigNode,
    FileOrData,
    KubeConfigLoader,
    KubeConfigMerger,
)

from soperator_pulumi.errors import KubernetesError
from soperator_pulumi.kube.access import Access, is_content
from soperator_pulumi.kube.verbs import Json

_MALFORMED = (config.ConfigException, yaml.YAMLError, OSError, AttributeError, KeyError, TypeError, ValueError)
"""Errors of the library for a malformed kubeconfig."""

_FILES: dict[bytes, int] = {}
"""File descriptors of unnamed files, by content. A file per connection would exhaust the descriptors of a process."""
_MAKING = threading.Lock()

_KubeConfigLoader: Any = KubeConfigLoader  # its methods have no types


def client_settings(access: Access) -> client.Configuration:
    """Return the client's settings for a cluster.

    Raises:
        KubernetesError: the kubeconfig names no cluster that can be read, or its exec plugin gives no credentials.
    """
    settings = client.Configuration()
    where = "kubeconfig" if access.kubeconfig else f"KUBECONFIG ({os.environ.get('KUBECONFIG', '~/.kube/config')})"
    try:
        known = os.environ.get("KUBECONFIG") or Path("~/.kube/config").expanduser().exists()
        if access.kubeconfig is None and not known and "KUBERNETES_SERVICE_HOST" in os.environ:
            config.load_incluster_config(client_configuration=settings)
        else:
            _Loader(_content(access.kubeconfig), access.context, config_base_path=None).load_and_set(settings)
    except _MALFORMED as error:
        raise KubernetesError(
            f"{where}: cannot read a cluster from it: {_why_not_read(error)}. "
            "Set KUBECONFIG to a file that `kubectl` accepts, or give kubeconfig and context."
        ) from error
    return settings


def not_reached(host: str, error: BaseException) -> str:
    """Return the message for an API server that does not answer."""
    return (
        f"The Kubernetes API at {host} is not reached: {_cause(error)}. "
        "Check that the cluster runs, and that KUBECONFIG or the given kubeconfig and context name it."
    )


def _cause(error: BaseException) -> str:
    """Return the innermost cause: outer ones repeat addresses and retries."""
    reason = getattr(error, "reason", None)
    return _cause(reason) if isinstance(reason, BaseException) else str(error).rpartition(": ")[2]


class _Loader(_KubeConfigLoader):  # type: ignore[misc] # see there
    """The library's loader, with two differences.

    A failed exec plugin is an error: the library would continue without credentials. Certificates and keys are in
    unnamed files: the library would leave them in /tmp when a process is killed, as engines do with their providers.
    """

    _cluster: Any
    _user: Any

    def load_and_set(self, client_configuration: client.Configuration) -> None:
        for kind, entry in (("cluster", self._cluster), ("user", self._user)):
            if entry is not None and not (isinstance(entry, ConfigNode) and isinstance(entry.value, dict)):
                raise config.ConfigException(f"the {kind} of the context is not a mapping")
        super().load_and_set(client_configuration)

    def _load_from_exec_plugin(self) -> bool:
        """Take the credentials that a plugin prints, and call it again when they have expired."""
        if "exec" not in self._user:
            return False
        try:
            self._take(ExecProvider(self._user["exec"], self._get_base_path(self._cluster.path), self._cluster).run())
        except (*_MALFORMED, subprocess.SubprocessError) as error:
            raise KubernetesError(
                f"The exec plugin of the kubeconfig gives no credentials: {_why_not_read(error)}. Its output may hold "
                "secrets and is not shown: run `kubectl get namespaces` with this kubeconfig to see it. Log in again "
                "if necessary, and run again."
            ) from None
        return True

    def _take(self, status: Json) -> None:
        """Take a token, or a certificate and its key, from `status` of an ExecCredential."""
        if token := status.get("token"):
            self.token = f"Bearer {token}"
        else:
            certificate, key = status.get("clientCertificateData"), status.get("clientKeyData")
            if not (certificate and key):
                raise config.ConfigException("exec: it printed neither a token nor a certificate with its key")
            self.cert_file, self.key_file = _file_of(certificate.encode()), _file_of(key.encode())
        if "expirationTimestamp" in status:
            self.expiry = parse_rfc3339(status["expirationTimestamp"])

    def _load_cluster_info(self) -> None:
        cluster, user = self._cluster, self._user
        self._cluster, self._user = _with_files(cluster), _with_files(user)
        super()._load_cluster_info()
        self._cluster, self._user = cluster, user  # when called again, a plugin gets the original entry


def _with_files(entry: ConfigNode | None) -> ConfigNode | None:
    """Return a cluster or user whose certificates and keys are paths of files instead of data."""
    if entry is None:
        return None
    value = dict(entry.value)
    for name in ("certificate-authority", "client-certificate", "client-key"):
        if data := value.pop(f"{name}-data", None):
            value[name] = _file_of(base64.standard_b64decode(data))
    return ConfigNode(entry.name, value, entry.path)


def _file_of(content: bytes) -> str:
    """Return the path of a file with this content, which only this process can open and which vanishes with it."""
    if sys.platform != "linux":  # elsewhere the path of an open file can be read only once
        return str(FileOrData({"it": content.decode()}, None, data_key_name="it", base64_file_content=False).as_file())
    with _MAKING:
        if content not in _FILES:
            with tempfile.TemporaryFile() as file:
                file.write(content)
                file.flush()
                _FILES[content] = os.dup(file.fileno())  # kept open while connections may be made
    return f"/proc/self/fd/{_FILES[content]}"  # proc_pid_fd(5)


def _content(kubeconfig: str | None) -> Json | ConfigNode:
    """Return the configuration of a kubeconfig, given as content or path; None means the ambient one."""
    if kubeconfig is not None and is_content(kubeconfig):
        given = yaml.safe_load(kubeconfig)
        if not isinstance(given, dict):
            raise config.ConfigException("its content is not a mapping")
        return given
    # The library reads KUBECONFIG only when it is imported.
    path = kubeconfig or os.environ.get("KUBECONFIG") or KUBE_CONFIG_DEFAULT_LOCATION
    found: ConfigNode | None = KubeConfigMerger(path).config
    if found is None:
        raise config.ConfigException("no configuration was found there")
    return found


def _why_not_read(error: Exception) -> str:
    """Return the problem of a kubeconfig, without quoting it or a plugin's output."""
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        return f"line {error.problem_mark.line + 1} is not valid YAML"
    if isinstance(error, yaml.YAMLError):
        return "it is not valid YAML"
    if isinstance(error, (AttributeError, TypeError)):
        return "an entry has the wrong type: it must be a mapping, a list or text"
    if ended := re.match(r"(exec|cmd-path): process returned (-?\d+)", str(error)):
        return f"the program ended with exit code {ended[2]}"
    # After a brace, the library quotes a whole entry.
    return str(error).partition("{")[0].strip().rstrip(".")
