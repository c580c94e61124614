"""Client of the API server for plain objects, over the official client's connection."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tools.console import UserError
from tools.engine.kubernetes.provider_settings import Kubeconfig

Object = dict[str, Any]

APPLY = "application/apply-patch+yaml"
JSON_PATCH = "application/json-patch+json"
_TIMEOUT_SECONDS = (5.0, 60.0)  # to connect, and for an answer
_CONNECTIONS = 32


class ApiError(UserError):
    """Refusal by the API server."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason


class UnreachableError(UserError):
    """Failure to reach the API server."""


@dataclass(frozen=True)
class ApiResource:
    """Kind of object as the API server provides it."""

    api_version: str
    plural: str
    namespaced: bool

    def path(self, namespace: str, name: str = "") -> str:
        """Return the path of an object, or of all objects in a namespace."""
        root = "/api/" if "/" not in self.api_version else "/apis/"
        place = f"/namespaces/{namespace}" if self.namespaced and namespace else ""
        return f"{root}{self.api_version}{place}/{self.plural}" + (f"/{name}" if name else "")


class ApiConnection:
    """Connection to a cluster, opened on first use."""

    def __init__(self, kubeconfig: Kubeconfig) -> None:
        self.kubeconfig = kubeconfig
        self._client: Any = None
        self._resources: dict[str, dict[str, ApiResource]] = {}
        self._connecting = asyncio.Lock()

    async def api_resource(self, api_version: str, kind: str) -> ApiResource:
        """Return the API resource of a kind.

        Raises:
            ApiError: The API server does not serve the kind: reason NoMatch.
        """
        if kind not in self._resources.get(api_version, {}):
            root = "/api/" if "/" not in api_version else "/apis/"
            try:
                listed = await self.request("GET", f"{root}{api_version}")
            except ApiError as error:
                if error.status != 404:
                    raise
                listed = {"resources": []}
            self._resources[api_version] = {
                entry["kind"]: ApiResource(api_version, entry["name"], entry["namespaced"])
                for entry in listed["resources"]
                if "/" not in entry["name"]
            }
        found = self._resources[api_version].get(kind)
        if found is None:
            message = f"the API server has no {kind} in {api_version}. Is its CustomResourceDefinition installed?"
            raise ApiError(404, "NoMatch", message)
        return found

    async def request(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        content_type: str = "application/json",
        query: Mapping[str, str] | None = None,
    ) -> Object:
        """Send a request to the API server, and return the answer.

        Raises:
            ApiError: The API server refused the request.
            UnreachableError: The API server did not answer.
        """
        async with self._connecting:
            if self._client is None:
                self._client = await asyncio.to_thread(_connect, self.kubeconfig)
        headers = {"Content-Type": content_type, "Accept": "application/json"}
        asked = self._client.param_serialize(
            method, path, header_params=headers, query_params=list((query or {}).items()), body=body,
            auth_settings=["BearerToken"],
        )  # fmt: skip
        return await asyncio.to_thread(self._ask, asked)

    def _ask(self, asked: tuple[object, ...]) -> Object:
        from urllib3.exceptions import HTTPError  # noqa: PLC0415 - see _connect

        try:
            response = self._client.call_api(*asked, _request_timeout=_TIMEOUT_SECONDS)
            text = response.read()
        except (HTTPError, OSError) as error:
            reason = getattr(error, "reason", None) or error
            raise UnreachableError(
                f"the Kubernetes API server {self._client.configuration.host} does not answer: {reason}. "
                f"Is the cluster up, and is {self.kubeconfig.source} (context {self.kubeconfig.context}) right?"
            ) from None
        answer = json.loads(text) if text[:1] == b"{" else {"message": text.decode(errors="replace").strip()}
        if not 200 <= response.status <= 299:
            reason = answer.get("reason", "")
            raise ApiError(response.status, reason, answer.get("message") or f"HTTP status {response.status}")
        return dict(answer)

    async def get(self, api_version: str, kind: str, namespace: str, name: str) -> Object | None:
        """Return an object; None if it does not exist."""
        path = (await self.api_resource(api_version, kind)).path(namespace, name)
        try:
            return await self.request("GET", path)
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    async def list(self, api_version: str, kind: str, namespace: str, **selectors: str) -> list[Object]:
        """Return the objects of a namespace that match a `labelSelector` or `fieldSelector`."""
        path = (await self.api_resource(api_version, kind)).path(namespace)
        listed = await self.request("GET", path, query=selectors)
        return [{"apiVersion": api_version, "kind": kind, **item} for item in listed["items"]]

    def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            self._client.close()


def _connect(kubeconfig: Kubeconfig) -> Any:  # noqa: ANN401 - the official client is typed only in part
    # The import takes a quarter of a second: a run that changes nothing does without.
    from kubernetes import client  # noqa: PLC0415

    from soperator_pulumi.errors import KubernetesError  # noqa: PLC0415
    from soperator_pulumi.kube.access import Access  # noqa: PLC0415
    from soperator_pulumi.kube.kubeconfig import client_settings  # noqa: PLC0415

    given = str(kubeconfig.path) if kubeconfig.path is not None else json.dumps(kubeconfig.content)
    try:
        configuration = client_settings(Access(given, kubeconfig.context))
    except KubernetesError as error:
        raise UserError(f"kubeconfig {kubeconfig.source}, context {kubeconfig.context}: {error}") from None
    configuration.connection_pool_maxsize = _CONNECTIONS
    return client.ApiClient(configuration=configuration)
