"""Runs of helm: kubeconfig and values in private files, progress as it comes, and a time limit."""

import asyncio
import json
import os
import re
import tempfile
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path

from tools.console import UserError
from tools.engine.kubernetes import provider_settings
from tools.engine.kubernetes.provider_settings import KubernetesSettings
from tools.engine.local.helm import helm_binary
from tools.engine.local.helm.chart_place import ChartPlace

_REPOSITORY = "repository"  # name of the only one in the configuration
_STOP_SECONDS = 10
"""Time for helm to record that a release has failed, after it was told to stop."""
_LINE_LIMIT_BYTES = 2**20
_OTHER_CLUSTER = "HELM_KUBE"  # variables that would lead helm to another cluster than the provider's
_DEBUG = re.compile(r"^\S+\.go:\d+: .* \[debug\] (?P<text>.*)$")

Line = Callable[[str], Awaitable[None]]


class HelmError(UserError):
    """A helm command failed."""


class Helm:
    """The helm binary, with the cluster of a provider.

    Args:
        settings: Inputs of the provider.
        environment: Variables that override the caller's.
        folder: Folder that relative paths of charts start from.
    """

    def __init__(self, settings: KubernetesSettings, environment: Mapping[str, str], folder: Path) -> None:
        self._settings = settings
        self._environment = environment
        self.folder = folder

    async def show_chart(self, chart: ChartPlace) -> str:
        """Return the `Chart.yaml` of a chart."""
        async with self._signed_in(chart) as words:
            return await self._run("show", "chart", *words)

    async def install(self, release: str, chart: ChartPlace, flags: Sequence[str], values: object, debug: Line) -> None:
        """Install a chart as a release, `<namespace>/<name>`; `debug` receives what helm prints for debugging."""
        await self._apply("install", release, chart, flags, values=values, debug=debug)

    async def upgrade(self, release: str, chart: ChartPlace, flags: Sequence[str], values: object, debug: Line) -> None:
        """Upgrade a release."""
        await self._apply("upgrade", release, chart, flags, values=values, debug=debug)

    async def uninstall(self, release: str, flags: Sequence[str], debug: Line) -> str:
        """Uninstall a release, and return helm's remarks."""
        namespace, _, name = release.rpartition("/")
        with self._kubeconfig() as access:
            return await self._run("uninstall", name, f"--namespace={namespace}", *flags, *access, debug=debug)

    async def _apply(
        self, command: str, release: str, chart: ChartPlace, flags: Sequence[str], *, values: object, debug: Line
    ) -> None:
        namespace, _, name = release.rpartition("/")
        with self._kubeconfig() as access, _private_file(values) as file:
            async with self._signed_in(chart) as words:
                every = [name, *words, f"--namespace={namespace}", *flags, f"--values={file}", *access]
                await self._run(command, *every, debug=debug)

    @asynccontextmanager
    async def _signed_in(self, chart: ChartPlace) -> AsyncIterator[list[str]]:
        """Give helm the password of a chart's location through standard input, and yield the chart's arguments."""
        if not chart.needs_login:
            yield chart.words
            return
        with tempfile.TemporaryDirectory(prefix="pulumi-helm-") as folder:
            login = ["--username", chart.username, "--password-stdin", *_without_version(chart.flags)]
            if chart.registry:
                place = [f"--registry-config={folder}/registry.json"]
                await self._run("registry", "login", chart.registry, *login, *place, stdin=chart.password)
                yield [chart.chart, *chart.flags, *place]
            else:
                place = [f"--repository-config={folder}/repositories.yaml", f"--repository-cache={folder}/cache"]
                await self._run("repo", "add", _REPOSITORY, chart.repository, *login, *place, stdin=chart.password)
                yield [f"{_REPOSITORY}/{chart.chart}", *chart.flags, *place]

    async def _run(self, *arguments: str, stdin: str = "", debug: Line | None = None) -> str:
        program = await asyncio.to_thread(helm_binary.built)
        every = {**os.environ, **self._environment}
        process = await asyncio.create_subprocess_exec(
            # Helm ends with us, even if we are killed, and records that the release has failed.
            *("setpriv", "--pdeathsig", "TERM", "--", str(program), *arguments, *(["--debug"] if debug else [])),
            stdin=PIPE, stdout=PIPE, stderr=PIPE, limit=_LINE_LIMIT_BYTES, start_new_session=True,
            cwd=self.folder, env={key: value for key, value in every.items() if not key.startswith(_OTHER_CLUSTER)},
        )  # fmt: skip
        try:
            _, printed, errors = await asyncio.gather(_write(process, stdin), _text(process), _errors(process, debug))
            await process.wait()
        finally:
            await _stop(process)
        if process.returncode:
            raise HelmError("\n".join(errors) or f"helm {arguments[0]} failed with exit code {process.returncode}")
        return printed

    @contextmanager
    def _kubeconfig(self) -> Iterator[list[str]]:
        found = provider_settings.load(self._settings, self._environment)
        context = f"--kube-context={found.context}"
        if found.path is not None:
            yield [f"--kubeconfig={found.path.absolute()}", context]
            return
        with _private_file(found.content) as file:
            yield [f"--kubeconfig={file}", context]


@contextmanager
def _private_file(content: object) -> Iterator[str]:
    """Write JSON, which is also YAML, to a file without a name, so that a killed process leaves nothing."""
    with tempfile.TemporaryFile("w") as file:
        json.dump(content, file)
        file.flush()
        yield f"/proc/{os.getpid()}/fd/{file.fileno()}"


def _without_version(flags: Sequence[str]) -> list[str]:
    """Return the flags of a chart that its location also accepts: the certificates."""
    return list(flags[: flags.index("--version")] if "--version" in flags else flags)


async def _write(process: Process, text: str) -> None:
    assert process.stdin is not None  # noqa: S101 - it was started with a pipe
    process.stdin.write(text.encode())
    process.stdin.close()


async def _text(process: Process) -> str:
    assert process.stdout is not None  # noqa: S101 - it was started with a pipe
    return (await process.stdout.read()).decode(errors="replace")


async def _errors(process: Process, debug: Line | None) -> list[str]:
    """Return the last error that helm prints, without its stack trace."""
    found: list[str] = []
    assert process.stderr is not None  # noqa: S101 - it was started with a pipe
    async for raw in process.stderr:
        line = raw.decode(errors="replace").rstrip("\n")
        if match := _DEBUG.match(line):
            if found:
                break  # the stack follows
            if debug:
                await debug(match["text"])
        elif found or line.startswith("Error: "):
            found.append(line.removeprefix("Error: "))
    await process.stderr.read()
    return found


async def _stop(process: Process) -> None:
    """Stop helm, if it is still running, so that it records the failure of the release."""
    if process.returncode is not None:
        return
    with suppress(ProcessLookupError):
        process.terminate()
    try:
        await asyncio.wait_for(process.wait(), _STOP_SECONDS)
    except TimeoutError:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
