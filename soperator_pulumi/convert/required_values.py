"""Values that no input has, and new volumes, with the reasons that both projects share."""

from typing import Any

from soperator_pulumi.convert.conversion import Conversion, Placed

NEW_STATE = "a new claim is created: slurmctld of another Slurm release cannot read this state. The queue starts empty"

WHY = "runs other programs; `make images` builds the images here"


def require_images(work: Conversion) -> None:
    """Write placeholders for the images of this project's programs."""
    images, accounting = work.mapping("images"), work.stack.get("accounting", {})
    names = ["controller", "worker", "login"]
    if not isinstance(accounting, Placed):
        names += ["accounting"] if accounting.get("database") else ["accounting", "database"]
    names += [image for key, image in (("rest", "rest"), ("metrics", "exporter")) if key in work.stack]
    for name in (*names, "munge", "jail_tools"):
        work.require(images, name, "`make images REGISTRY=...` builds it, pushes it and prints its reference")


def require_jail_image(work: Conversion) -> None:
    """Write a placeholder for the image of the root filesystem of jobs and sessions."""
    work.require(
        work.mapping("images"),
        "jail",
        "root filesystem of jobs and sessions: any image of a distribution, or that of `make images`",
    )


def require_allowed_sources(work: Conversion, login: dict[str, Any]) -> None:
    """Write a placeholder for the addresses that may connect to a Service that is open to the outside."""
    work.require(
        login,
        "allowed_sources",
        'addresses that may connect, such as [10.0.0.0/8]. The input admits all addresses, which is ["0.0.0.0/0"] here',
    )
