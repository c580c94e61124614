"""The command `import-image JOB IMAGE`: the last line that it prints is `image=` and the image's folder."""

import hashlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from container_images import registry_passwords
from container_images.bringing import ImageBringer
from container_images.image_reference import ImageError, parse
from container_images.image_store import STORE, ImageStore


def main(arguments: Sequence[str], environment: Mapping[str, str] = os.environ) -> int:
    """Bring the image for the job, and print progress. Return the exit code: 1 after words of a failure."""
    job, text = arguments
    try:
        folder = _import(job, text, environment)
    except ImageError as error:
        print(error, flush=True)
        return 1
    except OSError as error:
        print(f"{error.filename or 'the store of images'}: {error.strerror}", flush=True)
        return 1
    print(f"image={folder}", flush=True)
    return 0


def _say(text: str) -> None:
    print(text, flush=True)


def _unique(job: str, environment: Mapping[str, str]) -> str:
    """Return a name of the job that no other has: another cluster, or one with a new state, gives its number again."""
    marks = " ".join(environment.get(name, "") for name in ("SLURM_CLUSTER_NAME", "SLURM_JOB_START_TIME"))
    return f"{job}-{hashlib.sha256(os.fsencode(marks)).hexdigest()[:8]}"


def _import(job: str, text: str, environment: Mapping[str, str]) -> Path:
    image = parse(text, Path.cwd())
    store = ImageStore(Path(environment["HOME"]) / STORE, _say)
    authentication = registry_passwords.auth_file(image, registry_passwords.find(image, environment, _say))
    bringer = ImageBringer(image, authentication, environment, _say)
    digest = store.digest_of_job(_unique(job, environment), f"{image.skopeo} {image.version}", bringer.digest)
    return store.folder_of(digest, lambda part, new: bringer.bring(digest, part, new))
