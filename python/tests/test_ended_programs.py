"""Programs that end while they show captures, at any moment and in any way: no file of theirs stays."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from fake_cluster import FakeCluster

import flopwatch

#: Programs that end. ``FLOPWATCH_ENDED_PROGRAMS=1000`` ends a thousand, which takes minutes of two busy cores.
_PROGRAMS = int(os.environ.get("FLOPWATCH_ENDED_PROGRAMS", "50"))
#: Seconds for the first of them, and for each: a machine of two cores that is busy with other tests takes up to one.
_FIRST, _EACH = 60, 3

#: Forks programs, four at once, each of which shows a capture at a gateway and one in memory to browsers that never stop asking.
FORKS = """
import json, os, signal, sys, tempfile, threading, time, urllib.request
from contextlib import suppress
from random import Random

import flopwatch

ENDINGS = {
    "the end of the program": {0},
    "an exception": {1},
    "sys.exit": {3},
    "os._exit": {4},
    # Where it comes between two instructions, Python may take it for an exception of a thread or of the program.
    "SIGINT": {0, 1, -signal.SIGINT},
    "SIGTERM": {-signal.SIGTERM},
    "SIGKILL": {-signal.SIGKILL},
}

kubeconfig, gateway, gateway_ca, trace, programs = sys.argv[1:]


def browse(address, random):
    path = address.split("?")[0] + address.split("file=")[1]
    with suppress(Exception):
        while True:
            begin = random.randrange(400_000)
            asked = urllib.request.Request(path, headers={"Range": f"bytes={begin}-{begin + 9999}"})
            urllib.request.urlopen(asked, timeout=20).read()


def interrupt(seconds, number):
    time.sleep(seconds)
    os.kill(os.getpid(), number)


def begin(work, *arguments):
    threading.Thread(target=work, args=arguments, daemon=True).start()


def program(ending, random):
    if ending.startswith("SIG"):
        begin(interrupt, random.uniform(0, 0.3), getattr(signal, ending))
    remote = flopwatch.Client(kubeconfig=kubeconfig, gateway=gateway, gateway_ca=gateway_ca).open("first")
    for capture in (remote, flopwatch.open(trace)):
        address = flopwatch.view(capture).address
        begin(browse, address, random)
    if ending.startswith("SIG"):
        time.sleep(5)
    time.sleep(random.uniform(0, 0.02))
    if ending == "an exception":
        raise RuntimeError(ending)
    if ending == "sys.exit":
        sys.exit(3)
    if ending == "os._exit":
        os._exit(4)


def ended(running, others):
    child, status = os.wait()
    ending = running.pop(child)
    code = os.waitstatus_to_exitcode(status)
    if code not in ENDINGS[ending]:
        others.append((ending, code))


# Python looks once whether the folder takes files.
tempfile.gettempdir()
running, others = {}, []
for number in range(int(programs)):
    ending = list(ENDINGS)[number % len(ENDINGS)]
    child = os.fork()
    if child == 0:
        program(ending, Random(number))
        break
    running[child] = ending
    if len(running) == 4:
        ended(running, others)
else:
    while running:
        ended(running, others)
    print(json.dumps(others))
"""


def test_programs_that_end_leave_nothing(cluster: FakeCluster, timeline: Path, trace: Path, tmp_path: Path) -> None:
    cluster.add("first", {"timeline.h5": timeline.read_bytes()})
    room = tmp_path / "room"
    room.mkdir()
    environment = {**os.environ, "PYTHONPATH": str(Path(flopwatch.__file__).parents[1]), "TMPDIR": str(room)}
    given = [*map(str, cluster.options().values()), str(trace), str(_PROGRAMS)]
    timeout = _FIRST + _EACH * _PROGRAMS
    ran = subprocess.run([sys.executable, "-c", FORKS, *given], env=environment, capture_output=True, text=True, check=False, timeout=timeout)
    assert ran.returncode == 0, ran.stderr[-2000:]
    assert json.loads(ran.stdout) == [], f"ended otherwise: {ran.stderr[-2000:]}"
    assert sorted(path.name for path in room.iterdir()) == []
