"""Files that appear whole or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO
from uuid import uuid4


@contextmanager
def published(target: Path, *, overwrite: bool) -> Iterator[TextIO]:
    """A text that is there under the name ``target`` when the ``with`` ends, and nowhere where that raises.

    :raises FileExistsError: where something is there already.
    """
    if not overwrite and (target.exists() or target.is_symlink()):
        raise _there(target)
    made = target.with_name(f".flopwatch-{uuid4().hex}")
    with _removed_on_error(made):
        with made.open("x", encoding="utf-8") as out:
            yield out
        if overwrite:
            made.replace(target)
        else:
            move(made, target)


def move(made: Path, target: Path) -> None:
    """Moves a file to a name that nothing has.

    :raises FileExistsError: where something is there already.
    """
    try:
        # Of two programs that take the name one alone makes it. Links, which would do it in one step, are not everywhere.
        target.touch(exist_ok=False)
    except FileExistsError as error:
        raise _there(target) from error
    with _removed_on_error(target):
        made.replace(target)


def _there(target: Path) -> FileExistsError:
    return FileExistsError(f"{target}: is there already")


@contextmanager
def _removed_on_error(path: Path) -> Iterator[None]:
    try:
        yield
    except BaseException:
        with suppress(OSError):
            path.unlink()
        raise
