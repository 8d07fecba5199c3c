"""What the suite finds: see :class:`Found`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from typing_extensions import Self

    from flopwatch.capture import Result


class Found(dict[str, Any]):
    """Figures that are attributes and a dictionary at once: ``found.speedup`` is ``found["speedup"]``.

    They do not change: exports write what was found.
    Those whose fields are known are dataclasses: the fields are the items.
    """

    # The result that is exported in its place.
    __slots__ = ("_result",)

    def __post_init__(self) -> None:
        fields: dict[str, Any] = getattr(self, "__dataclass_fields__", {})
        dict.update(self, {name: getattr(self, name) for name in fields})

    def _does_not_change(self, *_: object, **__: object) -> NoReturn:
        msg = f"a {type(self).__name__} does not change: dict() makes a copy of it that does"
        raise TypeError(msg)

    # Attributes, items and what is exported stay the same.
    __setitem__ = __delitem__ = __ior__ = clear = pop = popitem = setdefault = update = _does_not_change

    def __reduce__(self) -> tuple[Any, ...]:
        # The result has a capture, which does not go to another process.
        return _again, (type(self), dict(self))

    def _made_of(self, result: Result) -> Self:
        """The same, with the result that is exported in its place."""
        object.__setattr__(self, "_result", result)
        return self


def origin(found: object, analysis: str) -> Result:
    """The result that is exported in its place.

    :raises TypeError: where it is none of this analysis, or was made in another process.
    """
    result: Result | None = getattr(found, "_result", None) if isinstance(found, Found) else None
    if result is None or result.analysis != analysis:
        msg = f"a result of {analysis} that this process made is wanted, not this {type(found).__name__}"
        raise TypeError(msg)
    return result


def _again(of: type[Found], items: dict[str, Any]) -> Found:
    return of(**items)
