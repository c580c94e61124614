"""The page on configuration."""

from tools import docs


def test_the_page_is_what_the_specification_says() -> None:
    assert docs.FILE.read_text() == docs.page(), "run `make docs`"
