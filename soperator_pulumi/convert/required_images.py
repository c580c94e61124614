"""Images, which no input can give: those of other projects run other programs."""

from soperator_pulumi.convert.conversion import Conversion

OURS = ("controller", "worker", "login", "munge", "jail_tools")

WHY = "runs other programs; images of ours are built by `make images`"


def require_images(work: Conversion) -> None:
    """Write placeholders for the images of our own programs."""
    images = work.mapping("images")
    for name in OURS:
        work.require(images, name, "`make images REGISTRY=...` builds it, pushes it and prints its reference")


def require_jail_image(work: Conversion) -> None:
    """Write a placeholder for the root filesystem of jobs and sessions."""
    work.require(
        work.mapping("images"),
        "jail",
        "root filesystem of jobs and sessions: any image of a distribution, or that of `make images`",
    )
