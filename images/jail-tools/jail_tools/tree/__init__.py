"""Content of a root tree: entries with attributes and content, their differences, and the manifest."""
