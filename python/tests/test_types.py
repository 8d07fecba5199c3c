"""What type checkers are told of results, against results. ``typed.py`` shows what they make of it."""

from __future__ import annotations
import __future__

import builtins
import types
import typing
from pathlib import Path
from typing import Any

import pytest
import typing_extensions

import flopwatch
from flopwatch.capture import Result

STUB = Path(flopwatch.__file__).with_name("_catalogue.pyi")


class Names(dict[str, Any]):
    """Names of the stub, which has some of them before they are declared."""

    def __missing__(self, name: str) -> Any:
        if hasattr(builtins, name) or name.startswith("_"):
            raise KeyError(name)
        return typing.ForwardRef(name)


@pytest.fixture(scope="module")
def stub() -> dict[str, Any]:
    """What the stub declares."""
    code = compile(STUB.read_text(), STUB, "exec", flags=__future__.annotations.compiler_flag, dont_inherit=True)
    declared = Names()
    exec(code, {"__name__": "flopwatch._catalogue", "__package__": "flopwatch", "overload": typing.overload}, declared)
    return dict(declared)


def differences(value: Any, told: Any, declared: dict[str, Any], place: str) -> list[str]:  # noqa: PLR0911
    """Where a value of JSON is not of the type that is told."""
    told = declared[told.__forward_arg__] if isinstance(told, typing.ForwardRef) else told
    origin, arguments = typing.get_origin(told), typing.get_args(told)
    if origin in {typing.Union, types.UnionType}:
        found = [differences(value, choice, declared, place) for choice in arguments]
        return [] if [] in found else min(found, key=len)
    if origin is typing.Literal:
        return [] if value in arguments else [f"{place}: {value!r} is none of {arguments}"]
    if origin is list and isinstance(value, list):
        return [wrong for item in value for wrong in differences(item, arguments[0], declared, f"{place}[]")]
    if origin is dict and isinstance(value, dict):
        return [wrong for item in value.values() for wrong in differences(item, arguments[1], declared, f"{place}{{}}")]
    if typing_extensions.is_typeddict(told) and isinstance(value, dict):
        return of_fields(value, told, declared, place)
    if told is float and isinstance(value, int) and not isinstance(value, bool):
        return []
    if told is type(None):
        return [] if value is None else [f"{place}: {value!r} is not null"]
    return [] if type(value) is told else [f"{place}: {value!r} is no {told}"]


def of_fields(value: dict[str, Any], told: type, declared: dict[str, Any], place: str) -> list[str]:
    """The same of an object, whose fields are the class's and no others."""
    fields = typing_extensions.get_type_hints(told, declared, include_extras=True)
    optional = {name: typing.get_args(of)[0] for name, of in fields.items() if typing.get_origin(of) is typing_extensions.NotRequired}
    wrong = [f"{place}.{name} is told and is not there" for name in fields.keys() - optional.keys() - value.keys()]
    wrong += [f"{place}.{name} is there and is not told" for name in value.keys() - fields.keys()]
    for name in value.keys() & fields.keys():
        wrong += differences(value[name], optional.get(name, fields[name]), declared, f"{place}.{name}")
    return wrong


def result_type(name: str, declared: dict[str, Any]) -> type[Result]:
    """What ``analyze`` of that name gives, as the stub says."""
    words = (word[0].upper() + word[1:] for word in name.replace("_", "-").split("-"))
    found: type[Result] = declared[f"{''.join(words)}Result"]
    return found


def test_results_are_of_the_types_that_are_told(stub: dict[str, Any], trace: Path) -> None:
    capture = flopwatch.open(trace)
    wrong, tried = [], 0
    for name, entry in flopwatch.catalogue().items():
        if entry["result"] is None:
            continue
        try:
            value = flopwatch.analyze(name, [capture] * (2 if entry["inputs"] == "two" else 1)).to_dict()
        except flopwatch.FlopwatchError:
            continue
        # What the class of all results has itself is told there.
        value = {field: of for field, of in value.items() if field not in dir(Result)}
        wrong += of_fields(value, result_type(name, stub), stub, name)
        tried += 1
    assert sorted(set(wrong)) == []
    assert tried > 50


def test_wrong_types_would_be_found(stub: dict[str, Any]) -> None:
    missing = {"what": "this", "extra": 1}
    assert sorted(differences(missing, stub["NotCaptured"], stub, "it")) == ["it.extra is there and is not told", "it.reason is told and is not there"]
    assert differences("tpu", stub["FlameWeight"], stub, "weight") == ["weight: 'tpu' is none of ('gpu', 'cpu', 'samples')"]
    assert differences(1, float, stub, "number") == []
    assert differences(True, int, stub, "number") != []


def test_parameters_are_those_of_the_catalogue(stub: dict[str, Any]) -> None:
    for name, entry in flopwatch.catalogue().items():
        if entry["result"] is not None:
            told = stub.get(result_type(name, stub).__name__.removesuffix("Result") + "Parameters")
            assert set(entry["parameters"].get("properties", {})) == set(told.__annotations__ if told else {}), name


def test_types_cost_nothing_at_run_time() -> None:
    with pytest.raises(ModuleNotFoundError):
        __import__("flopwatch._catalogue")
    assert flopwatch.Capture.analyze.__qualname__ == "Capture.analyze"  # type: ignore[attr-defined]
    assert "Runs an analysis" in str(flopwatch.Capture.analyze.__doc__)
