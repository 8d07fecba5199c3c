"""Foreign text in HTML. What a capture names is of strangers: it is shown as text, never taken as markup."""

from __future__ import annotations

import html

#: Longer names, such as those of templates, are cut.
_CHARACTERS = 120


def escaped(text: str) -> str:
    """The text for an element or a quoted attribute. Characters that show nothing, or turn the direction of others, are replaced."""
    shown = "".join(character if character.isprintable() or character in "\t\n" else "\ufffd" for character in text)
    return html.escape(shown)


def short(text: str) -> str:
    """The same, cut where it is long."""
    return escaped(text if len(text) <= _CHARACTERS else text[: _CHARACTERS - 1] + "…")
