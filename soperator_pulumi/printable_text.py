"""Text that others wrote, made safe for a terminal, a message or a page."""


def printable(text: str, keep: str = "") -> str:
    """Return a text with "?" for characters that a terminal does not show: none moves the cursor or starts a line.

    Args:
        text: The text.
        keep: Characters that stay although a terminal does not show them. Default: none.
    """
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() or character in keep else "?" for character in text)
