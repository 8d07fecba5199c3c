"""``python -m flopwatch``: reports of captures, the same as the program ``flopwatch`` writes."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from . import FlopwatchError, __version__
from .capture import Capture, open, render, write
from .publication import published
from .suite.session import session_of

#: Commands: the analysis that each is, and what it writes.
COMMANDS = {
    "profile": ("advice", "what makes a capture slow and what to do; with --json the figures of a ProfileSession"),
    "memory": ("profiler-memory", "how much memory of GPUs was allocated over the time of a capture"),
    "flame": ("flame-graph", "the flame graph of a capture: time of GPUs, or with -p weight=cpu of the CPU, by stack"),
    "timeline": ("profiler-timeline", "when the CPU and GPUs of a capture were active"),
    "hta": ("profiler-hta", "what the GPUs of a capture did with their time"),
    "compile": ("profiler-compile", "what torch.compile did in a capture: graph breaks, time, fusions"),
}

EPILOG = """\
Exit codes:
  0  written
  1  it failed; the message says why
  2  wrong usage

Examples:
  python -m flopwatch flame trace.json.gz -o flame.html
  python -m flopwatch timeline trace.json --json
  python -m flopwatch compile compiled.json --with eager.json -o compile.html"""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m flopwatch",
        description="Writes reports of captures: traces of PyTorch, and any other file that flopwatch.open reads.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"flopwatch {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, (analysis, about) in COMMANDS.items():
        text = f"Writes {about}."
        command = commands.add_parser(name, help=f"write {about}", description=text)
        command.add_argument("trace", metavar="TRACE", help="the capture")
        if name == "compile":
            command.add_argument("--with", dest="beside", metavar="TRACE", action="append", default=[], help="a capture of the eager program; may be repeated")
        command.add_argument("-o", "--output", metavar="OUT", type=Path, help="the file to write; it appears whole or not at all [default: standard output]")
        command.add_argument("--json", action="store_true", help="write JSON in place of HTML")
        command.add_argument("--force", action="store_true", help="replace the output if it is there")
        if name != "profile":
            about_parameter = f"a parameter of the analysis {analysis}; may be repeated"
            command.add_argument("-p", "--param", dest="parameters", metavar="NAME=VALUE", type=_parameter, action="append", default=[], help=about_parameter)
    return parser


def _parameter(word: str) -> tuple[str, Any]:
    name, equals, text = word.partition("=")
    if not equals:
        msg = f"{word!r} is no parameter: write NAME=VALUE"
        raise argparse.ArgumentTypeError(msg)
    try:
        value = json.loads(text)
    except ValueError:
        value = text
    return name, value if isinstance(value, bool | int | float) else text


def _run(command: str, arguments: argparse.Namespace, parameters: dict[str, Any]) -> None:
    output: Path | None = arguments.output
    if output is not None and not arguments.force and (output.exists() or output.is_symlink()):
        # Before the capture is read, which may take long.
        raise FileExistsError(output)
    captures = [open(path) for path in (arguments.trace, *getattr(arguments, "beside", ()))]
    analysis, _ = COMMANDS[command]
    format = "json" if arguments.json else "html"
    # The fields of several analyses, which no single one has.
    session = _session(captures[0]) if command == "profile" and arguments.json else None
    if output is None:
        text = render(analysis, captures, format, **parameters) if session is None else session
        # The engine's bytes, whatever the terminal's language is.
        sys.stdout.buffer.write(text.encode())
        sys.stdout.flush()
    elif session is None:
        write(analysis, captures, output, format=format, overwrite=arguments.force, **parameters)
    else:
        with published(output, overwrite=arguments.force) as out:
            out.write(session)


def _session(capture: Capture) -> str:
    return json.dumps(asdict(session_of(capture, trace_path=capture.path)), allow_nan=False) + "\n"


def main(words: Sequence[str] | None = None) -> int:
    """Runs a command line, and gives its exit code."""
    parser = _parser()
    arguments = parser.parse_args(words)
    pairs: list[tuple[str, Any]] = getattr(arguments, "parameters", [])
    parameters = dict(pairs)
    if len(parameters) < len(pairs):
        parser.error("a parameter is given more than once")
    try:
        _run(arguments.command, arguments, parameters)
    except FileExistsError:
        return _failed(f"{arguments.output}: is there already; --force replaces it")
    except BrokenPipeError:
        # Whoever read the output has enough of it, and Python would say so once more at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except FlopwatchError as error:
        return _failed(str(error))
    except OSError as error:
        return _failed(f"{arguments.output or 'standard output'}: {error.strerror}")
    except KeyboardInterrupt:
        return 130
    return 0


def _failed(why: str) -> int:
    print(f"flopwatch: {why}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
