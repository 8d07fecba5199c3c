"""A result in a notebook: the page that its analysis makes of it."""

from __future__ import annotations

import html

from .wording import escaped

#: Jupyter drops outputs of more than a million bytes in a second.
MAX_BYTES = 800_000

_HEIGHT = 520


def frame(analysis: str, page: str) -> str:
    """The page in a frame of its own: its style and its script, which sorts tables, touch nothing of the notebook."""
    return (
        f'<iframe title="{escaped(analysis)}" sandbox="allow-scripts" srcdoc="{html.escape(page)}" '
        f'style="width:100%;height:{_HEIGHT}px;border:1px solid #8886"></iframe>'
    )


def beside(analysis: str) -> str:
    """What stands in the place of a page that is too long."""
    return (
        f"<p><small>The page is too long for a notebook: <code>flopwatch.write(&quot;{escaped(analysis)}&quot;, captures, &quot;page.html&quot;, "
        "format=&quot;html&quot;)</code> writes it to a file.</small></p>"
    )
