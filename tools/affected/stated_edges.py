"""Dependencies that no import or path shows, and visible ones that affect no test or only a few.

Paths are those of files and folders, from the root of the tree.
"""

from dataclasses import dataclass

ALL = ("requirements.lock", "pyproject.toml", "tools/venv.sh")
"""Files that every test depends on: they set up the environment of tests and its settings."""

_PROGRAM = ("__main__.py", "Pulumi.yaml")
_STACKS = (*_PROGRAM, "stacks")
_IN_PODS = ("images/AS_OF", "images/*/*", "spank-plugin")
_SOURCES_OF_IMAGES = ("images", "spank-plugin")
_COMMANDS = ("admin", "build", "down", "drift", "env", "preview", "refresh", "review", "ssh", "up")
_MAKE = ("Makefile", *(f"tools/{command}.py" for command in _COMMANDS))

_CLI = "soperator_pulumi/cli"

USED = {
    # run commands, whose modules are imported by name
    "tests/cluster/test_accounting.py": (f"{_CLI}/dumps.py",),
    "tests/cluster/test_command_line.py": tuple(f"{_CLI}/{name}.py" for name in ("status", "nodes", "ssh", "admin")),
    "tests/cluster/test_preflight.py": (f"{_CLI}/preflight.py",),
    "tests/unit/cli/test_completion.py": (_CLI,),
    "tests/unit/cli/test_convert_command.py": (f"{_CLI}/convert.py",),
    "tests/unit/cli/test_logins.py": (_CLI,),
    "tests/unit/cli/test_main.py": (_CLI,),
    "tests/unit/cli/test_previews.py": (f"{_CLI}/drift.py", f"{_CLI}/review.py"),
    "tests/unit/convert/test_convert_page.py": (f"{_CLI}/convert.py",),
    "tests/unit/test_monitoring_page.py": (f"{_CLI}/alerts.py",),
    "tests/cluster/slurm.py": (*_PROGRAM, *_IN_PODS),  # deploys the program of the tree; pods run the images
    # types the commands of its pages
    "tests/cluster/test_readme.py": (*_MAKE, *_STACKS, *_IN_PODS, "policy", "docs/jail.md", "docs/operations.md"),
    "tests/cluster/test_image_builds.py": ("Makefile", *_IN_PODS),
    "tests/examples.py": ("examples/*/__main__.py",),
    "tests/installed.py": ("soperator_pulumi", "README.md", "LICENSE"),  # builds and installs the package
    "tests/rendered/policy/test_stacks.py": _STACKS,  # makes the stacks of the tree, as the next two do
    "tests/rendered/stacks/test_files.py": _STACKS,
    "tests/unit/tools/test_render.py": _STACKS,
    "tests/unit/tools/test_deployed_clusters.py": ("Makefile",),
    "tests/unit/test_public_interface.py": ("soperator_pulumi",),  # reads the package, without an import
    "tools/site/__main__.py": ("soperator_pulumi", "docs", "tools/site/conf.py"),  # names them for Sphinx
    "tools/docs/health_faults.py": ("images/health",),  # runs the tests there for their tables
}
"""Uses of a file that its code does not show, such as programs that an engine runs or images that pods run.

Tests in a folder do not count.
"""

IGNORED = {
    "tests/cluster/test_readme.py": ("docs",),  # reads the two pages in USED, by names in a loop
    # names files as examples, and those of trees that it makes
    "tests/unit/tools/affected": (
        "soperator_pulumi",
        *_SOURCES_OF_IMAGES,
        "docs",
        "tools/dashboard",
        "tools/docs",
        "tools/up.py",
    ),
    "tests/warm_python.py": ("soperator_pulumi", "stacks"),  # imports ahead what programs use or do not use
    "tools/images/recipe.py": _SOURCES_OF_IMAGES,  # makes tags of their content; what runs them has them in USED
}
"""Uses of a file or folder that the code shows, but that affect no test."""


@dataclass(frozen=True)
class Choice:
    """Uses that depend on the options of a test cluster."""

    user: str
    """The file that uses them."""
    used: str
    """Folder of the used files."""
    word: str
    """Text in every test whose cluster has the option."""


CHOICES = (
    Choice("soperator_pulumi/stack/program.py", "soperator_pulumi/platform", "platform"),
    Choice("soperator_pulumi/cluster/rules_and_dashboards.py", "soperator_pulumi/monitoring", "metrics"),
    Choice("tests/engine/programs/declared/__main__.py", "soperator_pulumi/platform", "KubePrometheusStack"),
)
"""Uses that count for a test on a real Kubernetes only if its text has the word, as most clusters do without."""
