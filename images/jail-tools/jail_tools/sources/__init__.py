"""What a tree is filled from: a root filesystem or a tarball."""
