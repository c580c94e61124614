"""The page on configuration."""

from tools.docs import configuration_page


def test_the_page_is_what_the_specification_says() -> None:
    assert configuration_page.FILE.read_text() == configuration_page.text(), "run `make docs`"
