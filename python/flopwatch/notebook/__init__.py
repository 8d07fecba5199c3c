"""What a notebook shows: a capture as a timeline, a table as its first rows, a result as its page. Nothing of it is loaded from a network."""

from .timeline import View, view

__all__ = ["View", "view"]
