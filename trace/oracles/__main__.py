"""Holds what a program says of captures against independent readings of the same files.

    python3 trace/oracles --program target/debug/flopwatch FOLDER

Prints each difference with its file, figure, and both values (oracle's, program's). Ends with 1
where there is any. A file that neither reads is told and not counted as equal. Where the program
told that it left events out, what differs in that file is printed beside and does not fail."""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Iterator

import chrome
import compare
import figures
import nsys
import program
import reading

REPORTS = (".nsys-rep", ".qdrep")
# No oracle here knows them: told, and not taken for equal.
OTHER_FORMATS = (
    ".ncu-rep",
    ".xplane.pb",
    ".prof",
    ".csv",
    ".zip",
    ".pftrace",
    ".parquet",
    ".qdstrm",
)
NO_CAPTURES = (".md", ".note", ".py", ".txt")
# Larger files are told and left.
MAX_BYTES = 512 << 20


def main() -> int:
    parser = argparse.ArgumentParser(prog="oracles", description=__doc__.split("\n", 1)[0])
    parser.add_argument("folder", type=Path, help="a folder of captures, or one file")
    parser.add_argument(
        "--program", type=Path, required=True, help="the program under test, flopwatch"
    )
    parser.add_argument("--seconds", type=float, help="begin no further file after so many seconds")
    parser.add_argument(
        "--seed", type=int, default=0, help="draws the order of the files where --seconds is given"
    )
    parser.add_argument(
        "--per-file",
        type=float,
        default=300,
        help="longest time of one command of the program, in seconds",
    )
    options = parser.parse_args()
    files = sorted(captures(options.folder))
    if options.seconds is not None:
        random.Random(options.seed).shuffle(files)
    tally: Counter = Counter()
    began = time.monotonic()
    for at, file in enumerate(files):
        if options.seconds is not None and time.monotonic() - began > options.seconds:
            tally["left for want of time"] = len(files) - at
            break
        with tempfile.TemporaryDirectory() as folder:
            tally[check(file, options.program, Path(folder), options.per_file)] += 1
    print(
        f"{len(files)} files, seed {options.seed}: "
        + ", ".join(f"{count} {what}" for what, count in sorted(tally.items()))
    )
    if not tally["equal"] + tally["different"] + tally["with losses"]:
        print("nothing was compared")
        return 1
    return 1 if tally["different"] or tally["read by one alone"] else 0


def captures(folder: Path) -> Iterator[Path]:
    if folder.is_file():
        yield folder
    for path in folder.rglob("*"):
        if path.is_file() and not path.name.endswith(NO_CAPTURES):
            yield path


def check(file: Path, tested: Path, folder: Path, seconds: float) -> str:
    """Compares one file and says what came of it."""
    if file.name.endswith(OTHER_FORMATS):
        print(f"{file}: not compared: no oracle reads this format")
        return "of formats without an oracle"
    if file.stat().st_size > MAX_BYTES:
        print(f"{file}: not compared: larger than {MAX_BYTES} bytes")
        return "too large"
    wanted = refused = None
    try:
        source = file
        if file.name.endswith(REPORTS):
            source = exported(file, folder)
        wanted = figures.all_of(read(source))
    except Exception as error:  # whatever a file of others holds, the next one is compared
        refused = f"{type(error).__name__}: {error}"
    try:
        ours = program.Program(tested, file, folder, seconds)
        said = program.all_of(ours, wanted) if wanted else {}
    except program.Refused as error:
        if wanted is None:
            print(f"{file}: not compared: neither reads it. Oracle: {refused}. Program: {error}")
            return "read by neither"
        print(f"{file}: the oracle reads it, the program says: {error}")
        return "read by one alone"
    if wanted is None:
        print(f"{file}: the program reads it, the oracle says: {refused}")
        return "read by the program alone"
    lines = list(compare.differences(wanted, said))
    for line in lines:
        print(f"{file}: {line}")
    if not lines:
        print(f"{file}: equal in {len(wanted)} figures, {wanted['each event'].total()} events")
        return "equal"
    if losses := program.losses(ours):
        print(f"{file}: the program tells losses: {'; '.join(losses)}")
        return "with losses"
    return "different"


def read(file: Path) -> reading.Reading:
    with file.open("rb") as opened:
        head = opened.read(8)
    if head[:6] == b"SQLite" or head[:4] == b"\x89HDF":
        return nsys.read(file)
    return chrome.read(file)


def exported(report: Path, folder: Path) -> Path:
    """NVIDIA's own export of a report."""
    tools = [os.environ.get(name) for name in ("FLOPWATCH_NSYS", "FLOPWATCH_NSYS_NEWER")]
    # nsys writes beside what it reads.
    copy, output = folder / report.name, folder / "export.sqlite"
    copy.write_bytes(report.read_bytes())
    for tool in filter(None, tools):
        command = [
            tool,
            "export",
            "--type",
            "sqlite",
            "--force-overwrite",
            "true",
            "-o",
            str(output),
            str(copy),
        ]
        ended = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=300
        )
        if ended.returncode == 0:
            return output
    raise reading.Unreadable("no nsys that is installed exports it")


if __name__ == "__main__":
    sys.exit(main())
