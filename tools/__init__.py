"""Developer tools: build, start, deploy. They are not part of the package."""
