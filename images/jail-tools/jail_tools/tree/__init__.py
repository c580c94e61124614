"""What a root tree has: entries with attributes and content, how one differs from another, and the manifest of all."""
