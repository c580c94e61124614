"""What builds, starts and deploys the project on a developer's machine. None of it is in the package."""
