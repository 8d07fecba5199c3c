"""Sends to the endpoint for PyTorch what no program of PyTorch sends, until the file is there that the argument names.

After two minutes it ends by itself. Its last line says how many datagrams were taken.
"""

import os
import socket
import struct
import sys
import time

ENDPOINT = b"\0dynolog\0"


def request(pids, claimed=None, size=None):
    """A request for activities that claims these PIDs, and may lie about their number and about its own size."""
    count = len(pids) if claimed is None else claimed
    body = struct.pack("<iIii", 2, count, 0, 0) + b"".join(struct.pack("<i", pid) for pid in pids)
    return struct.pack("<Q32s", len(body) if size is None else size, b"req") + body


DATAGRAMS = [
    b"",
    b"x",
    b"x" * 5000,
    b"\xff" * 150_000,
    request([1]),
    request([1])[:41],
    request([1], claimed=0xFFFFFFFF),
    request([1], size=2**64 - 1),
    request(list(range(1, 30_000))),
    struct.pack("<Q32s", 16, b"ctxt") + b"\0" * 16,
    struct.pack("<Q32s", 0, b"y" * 32),
]

named = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
named.bind(b"\0flopwatch-hostile\0")
nameless = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
for client in (named, nameless):
    client.setblocking(False)

taken, sent, until = 0, 0, time.monotonic() + 120
while time.monotonic() < until and not os.path.exists(sys.argv[1]):
    client = named if sent % 2 else nameless
    try:
        client.sendto(DATAGRAMS[sent // 2 % len(DATAGRAMS)], ENDPOINT)
        taken += 1
    except OSError:
        # Nobody has the name yet, or the endpoint has enough.
        pass
    sent += 1
    time.sleep(0.005)
print(f"pid={os.getpid()} taken={taken}", flush=True)
