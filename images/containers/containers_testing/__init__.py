"""Parts of tests of images."""
