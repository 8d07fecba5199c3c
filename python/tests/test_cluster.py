"""Sessions of a cluster, against one on loopback. The whole-system tests have the real one."""

from __future__ import annotations

import asyncio
import io
import json
import multiprocessing
import subprocess
import sys
import threading
import time
from pathlib import Path

import h5py
import polars
import pyarrow
import pyarrow.parquet
import pytest
from fake_cluster import FakeCluster

import flopwatch


def test_a_pod_is_profiled_as_the_plugin_would(cluster: FakeCluster) -> None:
    client = flopwatch.Client(**cluster.options())
    made = client.run("pod/trainer", duration=5, trace=["nvtx", "cuda"], container="main")
    assert (made.name, made.namespace, made.target, made.phase) == ("trainer-abcde", "team", "pod/trainer", "waiting")
    spec = cluster.sessions[made.name]["spec"]
    assert (spec["durationSeconds"], spec["target"]["containerNames"]) == (5, ["main"])
    assert spec["profiler"] == {"type": "Auto", "nsys": {"trace": ["nvtx", "cuda"]}}


def test_manifests_are_of_pods_or_of_sessions(cluster: FakeCluster, tmp_path: Path) -> None:
    client = flopwatch.Client(**cluster.options())
    pod = {"kind": "Pod", "metadata": {"name": "bench"}, "spec": {"containers": [{"name": "main", "image": "b"}]}}
    made = client.run(pod, duration="1m")
    spec = cluster.sessions[made.name]["spec"]
    assert (made.name, spec["start"], spec["durationSeconds"]) == ("bench-abcde", "ContainerStart", 60)
    path = tmp_path / "session.yaml"
    path.write_text("kind: ProfilingSession\nmetadata: {name: mine}\nspec: {target: {podName: trainer}, durationSeconds: 3}\n")
    assert client.run(path).name == "mine"
    assert cluster.sessions["mine"]["spec"]["durationSeconds"] == 3
    with pytest.raises(flopwatch.RequestError, match="no options beside"):
        client.run(path, duration=5)
    with pytest.raises(flopwatch.RequestError, match="a Job is no pod"):
        client.run({"kind": "Job", "spec": {}})


def test_what_cannot_be_asked_for_is_said_without_a_cluster() -> None:
    client = flopwatch.Client(kubeconfig="/nowhere")
    with pytest.raises(flopwatch.RequestError, match="a window is 1 to 300 seconds long"):
        client.run("trainer", duration=0)
    with pytest.raises(flopwatch.RequestError, match="lower-case"):
        client.session("No_name")
    with pytest.raises(flopwatch.RequestError, match="there is no analysis"):
        client.analyze("mine", "nothing")
    with pytest.raises(TypeError, match="unexpected keyword argument 'open'"):
        client.run("trainer", open=True)  # type: ignore[call-arg]
    with pytest.raises(flopwatch.ClientError, match="no cluster is configured") as raised:
        client.sessions()
    assert raised.value.reason == "Kubeconfig"


def test_sessions_are_listed_with_their_captures(cluster: FakeCluster) -> None:
    cluster.add("first", {"timeline.h5": b"content"})
    cluster.add("second", {}, ("False", "Failed"))
    client = flopwatch.Client(**cluster.options())
    first, second = sorted(client.sessions(all_namespaces=True), key=lambda session: session.name)
    assert (first.phase, first.reason, first.requested_by) == ("succeeded", "Succeeded", "ada")
    assert first.created is not None
    assert first.created.timestamp() == 1_767_225_600
    assert [(capture.name, capture.pod, capture.node) for capture in first.captures] == [("first-1", "trainer", "n1")]
    assert first.captures[0].artifacts[0].bytes == 7
    assert (second.phase, second.message) == ("failed", "as it says")
    assert client.session("pfs/first") == first


def test_the_end_is_waited_for(cluster: FakeCluster) -> None:
    cluster.add("good", {})
    cluster.add("bad", {}, ("False", "Failed"))
    cluster.add("slow", {}, None)
    client = flopwatch.Client(**cluster.options())
    assert client.wait("good").phase == "succeeded"
    with pytest.raises(flopwatch.SessionFailedError, match="session bad failed: Failed: as it says") as raised:
        client.wait("bad")
    assert raised.value.reason == "Failed"
    with pytest.raises(TimeoutError, match="has not ended within 1 s"):
        client.wait("slow", timeout=0.5)
    client.stop("slow", discard=True)
    assert cluster.sessions["slow"]["spec"]["stop"] == "Discard"


def test_who_may_not_hears_of_the_role_that_helps(cluster: FakeCluster) -> None:
    cluster.add("first", {"timeline.h5": b"content"})
    cluster.refusals.append((403, "Forbidden"))
    client = flopwatch.Client(**cluster.options())
    for asked in (lambda: client.open("first"), lambda: client.analyze("first", "idle"), lambda: client.stop("first"), lambda: client.run("trainer")):
        with pytest.raises(flopwatch.ForbiddenError, match=r"you may not .* ClusterRole flopwatch-user") as raised:
            asked()
        assert raised.value.reason == "Forbidden"
    assert cluster.asked == []
    cluster.refusals[0] = (404, "NotFound")
    with pytest.raises(flopwatch.NotFoundError, match="cannot read session first"):
        client.session("first")


def test_files_are_fetched_whole(cluster: FakeCluster, tmp_path: Path) -> None:
    cluster.add("first", {"timeline.h5": b"content", "summary.json": b"{}"})
    client = flopwatch.Client(**cluster.options())
    paths = client.fetch("first", tmp_path / "here")
    assert sorted(path.name for path in paths) == ["summary.json", "timeline.h5"]
    assert (tmp_path / "here" / "timeline.h5").read_bytes() == b"content"
    (tmp_path / "here" / "timeline.h5").write_bytes(b"other")
    with pytest.raises(FileExistsError):
        client.fetch("first", tmp_path / "here")
    client.fetch("first", tmp_path / "here", overwrite=True, artifacts=["timeline.h5"])
    assert (tmp_path / "here" / "timeline.h5").read_bytes() == b"content"
    with pytest.raises(flopwatch.NotFoundError, match="published no nothing"):
        client.fetch("first", tmp_path / "here", artifacts=["nothing"])


def test_the_token_is_the_kubeconfigs_or_of_its_program(cluster: FakeCluster) -> None:
    cluster.add("first", {"timeline.h5": b"content"})
    program = cluster.folder / "credentials"
    program.write_text("""#!/bin/sh
echo run >> "$0.log"
n=$(wc -l < "$0.log")
echo '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"of-program-'$n'"}}'
""")
    program.chmod(0o755)
    user = {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": str(program), "interactiveMode": "Never"}}
    client = flopwatch.Client(**cluster.options(user))
    assert client.file("first", "timeline.h5").read() == b"content"
    (shown,) = set(cluster.tokens)
    assert shown.startswith("of-program-")
    # Tokens of programs end; the next one is asked for.
    cluster.taken.add(f"of-program-{int(shown.rsplit('-', 1)[1]) + 1}")
    assert client.file("first", "timeline.h5").read() == b"content"
    cluster.taken.add("given")
    assert flopwatch.Client(**cluster.options(), token="given").file("first", "timeline.h5").size == 7
    with pytest.raises(flopwatch.ClientError, match="has no token") as raised:
        flopwatch.Client(**cluster.options({"username": "ada", "password": "p"})).file("first", "timeline.h5")
    assert raised.value.reason == "NoToken"


def test_only_what_is_asked_for_is_moved(cluster: FakeCluster, timeline: Path) -> None:
    cluster.add("first", {"timeline.h5": timeline.read_bytes()})
    local = flopwatch.open(timeline)
    client = flopwatch.Client(**cluster.options())
    remote = client.open("first")
    assert remote.categories == local.categories
    assert (remote.session_id, remote.duration_ns) == (local.session_id, local.duration_ns)
    assert polars.DataFrame(remote.rows()).equals(polars.DataFrame(local.rows()))
    assert remote.size == timeline.stat().st_size
    kernels = remote.events("cuda_kernel")
    assert pyarrow.table(kernels).equals(pyarrow.table(local.events("cuda_kernel")))
    assert 0 < remote.bytes_read < remote.size / 2
    assert remote.bytes_read == sum(end - begin for begin, end in cluster.ranges)
    assert len(cluster.connections) < len(cluster.asked)
    moved = remote.bytes_read
    remote.events("cuda_kernel")
    assert remote.bytes_read == moved
    operators = remote.events("cpu_op")
    assert pyarrow.table(operators).equals(pyarrow.table(local.events("cpu_op")))
    assert moved < remote.bytes_read < remote.size
    with pytest.raises(flopwatch.RequestError, match="did not record"):
        remote.events("os_runtime")
    with pytest.raises(flopwatch.RequestError, match="there is no category"):
        remote.events("nothing")


def test_analyses_are_the_gateways_work(cluster: FakeCluster, timeline: Path) -> None:
    local = flopwatch.open(timeline)
    results = {name: json.dumps(local.analyze(name).to_dict()).encode() for name in ("kernel-types", "summary")}
    cluster.add("first", {"timeline.h5": timeline.read_bytes()})
    cluster.files |= results
    client = flopwatch.Client(**cluster.options())
    result = client.analyze("first", "kernel-types")
    assert result.to_dict() == local.analyze("kernel-types").to_dict()
    assert cluster.asked == ["/api/profiling/session/0badcafe/analyses/kernel-types"]
    remote = client.open("first")
    assert remote.analyze("kernel-types").to_dict() == result.to_dict()
    assert remote.summary() == local.summary()
    assert cluster.asked[-1] == "/api/profiling/session/0badcafe/analyses/summary?capture=first-1"
    cluster.files["kernel-types"] = b"kernels"
    assert client.render("first", "kernel-types", "text") == "kernels"
    assert cluster.asked[-1].endswith("?format=text")
    with pytest.raises(flopwatch.RequestError, match="has no parameter"):
        client.analyze("first", "idle", nothing=1)
    with pytest.raises(flopwatch.NotFoundError, match="it is NotFound here"):
        client.analyze("first", "idle")


def test_a_file_is_one_of_every_library(cluster: FakeCluster, timeline: Path, tmp_path: Path) -> None:
    local = flopwatch.open(timeline)
    table = tmp_path / "timeline.parquet"
    local.export("events-parquet", table)
    content = timeline.read_bytes()
    cluster.add("first", {"timeline.h5": content})
    # Made by the gateway, not published.
    cluster.files["timeline.parquet"] = table.read_bytes()
    client = flopwatch.Client(**cluster.options())
    with client.file("first", "timeline.h5") as file:
        with h5py.File(file) as opened:
            assert opened["cuda_kernel/start_ns"].shape == (300,)
            assert int(opened["cuda_kernel/duration_ns"][:].sum()) == 3_000_000
        assert 0 < file.bytes_read < file.size
        assert (file.seek(-5, io.SEEK_END), file.tell(), file.read(10)) == (file.size - 5, file.size - 5, content[-5:])
        assert file.read(10) == b""
        file.seek(1000)
        assert file.read(70_000) == content[1000:71_000]
        assert io.BufferedReader(file).read() == content[71_000:]
    with pytest.raises(ValueError, match="closed"):
        file.read(1)
    with client.file("first", "timeline.parquet") as file:
        assert pyarrow.parquet.read_table(file, columns=["category"]).num_rows == sum(local.categories.values())


def test_parts_of_two_contents_are_never_one_file(cluster: FakeCluster) -> None:
    before, after = bytes(1 << 20), bytes([1]) * (1 << 20)
    cluster.add("first", {"timeline.h5": before})
    file = flopwatch.Client(**cluster.options()).file("first", "timeline.h5")
    cluster.files["timeline.h5"] = after
    file.seek(500_000)
    with pytest.raises(flopwatch.ClientError, match=r"timeline.h5 changed while it was read") as raised:
        file.read(10)
    assert raised.value.reason == "Changed"
    # What is served is not what was published.
    with pytest.raises(flopwatch.ClientError, match="is not what was published") as raised:
        flopwatch.Client(**cluster.options()).file("first", "timeline.h5")
    assert raised.value.reason == "Corrupt"


def test_damage_is_said(cluster: FakeCluster) -> None:
    cluster.add("first", {"timeline.h5": b"no timeline" * 100})
    with pytest.raises(flopwatch.ReadError, match=r"timeline.h5 of session first: "):
        flopwatch.Client(**cluster.options()).open("first")
    cluster.add_capture("first", "first-2", {})
    with pytest.raises(flopwatch.ClientError, match=r"several captures; name one .*: first-1, first-2"):
        flopwatch.Client(**cluster.options()).open("first")


def test_an_event_loop_waits_for_several_at_once(cluster: FakeCluster, timeline: Path) -> None:
    cluster.add("first", {"timeline.h5": timeline.read_bytes()})
    cluster.add("slow", {}, None)
    local = flopwatch.open(timeline)

    async def asked() -> None:
        client = flopwatch.AsyncClient(**cluster.options())
        remote, sessions, made = await asyncio.gather(client.open("first"), client.sessions(), client.run("trainer"))
        assert len(sessions) >= 2
        assert made.name == "trainer-abcde"
        kernels, operators = await asyncio.gather(remote.events("cuda_kernel"), remote.events("cpu_op"))
        assert pyarrow.table(kernels).equals(pyarrow.table(local.events("cuda_kernel")))
        assert len(operators) == local.categories["cpu_op"]
        assert (await client.file("first", "timeline.h5")).size == remote.size
        with pytest.raises(flopwatch.NotFoundError):
            await client.session("nothing")
        begin = time.monotonic()
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(client.wait("slow"), 0.3)
        assert time.monotonic() - begin < 5

    asyncio.run(asked())


ENDS = """
import asyncio, flopwatch, os, sys
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
print(len(asyncio.run(flopwatch.AsyncClient(kubeconfig=sys.argv[1]).sessions())))
"""


def test_a_program_may_end_when_its_event_loop_does(cluster: FakeCluster) -> None:
    cluster.add("first", {})
    kubeconfig = cluster.options()["kubeconfig"]
    # Whether a thread of the module is still at work is chance, which one processor makes likely.
    for _ in range(12):
        ran = subprocess.run([sys.executable, "-c", ENDS, kubeconfig], capture_output=True, text=True, check=False, timeout=60)
        assert (ran.returncode, ran.stdout) == (0, "1\n"), ran.stderr


def test_threads_share_a_capture(cluster: FakeCluster, timeline: Path) -> None:
    cluster.add("first", {"timeline.h5": timeline.read_bytes()})
    remote = flopwatch.Client(**cluster.options()).open("first")
    found: list[int] = []
    threads = [threading.Thread(target=lambda: found.append(len(remote.events("cpu_op")))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert found == [150_000] * 4


def _ask(client: flopwatch.Client, remote: flopwatch.RemoteCapture, queue: multiprocessing.Queue[tuple[int, int]]) -> None:
    queue.put((len(client.sessions()), len(remote.events("cpu_op"))))


def test_a_fork_asks_too(cluster: FakeCluster, timeline: Path) -> None:
    cluster.add("first", {"timeline.h5": timeline.read_bytes()})
    client = flopwatch.Client(**cluster.options())
    remote = client.open("first")
    context = multiprocessing.get_context("fork")
    queue: multiprocessing.Queue[tuple[int, int]] = context.Queue()
    child = context.Process(target=_ask, args=(client, remote, queue))
    child.start()
    assert queue.get(timeout=60) == (1, 150_000)
    child.join(60)
    assert child.exitcode == 0
    assert len(remote.events("cuda_kernel")) == 300


WAITS = """
import flopwatch, sys
client = flopwatch.Client(kubeconfig=sys.argv[1])
client.sessions()
print("ready", flush=True)
try:
    client.wait("slow")
except KeyboardInterrupt:
    print("interrupted", flush=True)
print(len(client.sessions()), flush=True)
"""


def test_an_interrupt_ends_the_wait_and_nothing_else(cluster: FakeCluster) -> None:
    cluster.add("slow", {}, None)
    kubeconfig = cluster.options()["kubeconfig"]
    with subprocess.Popen([sys.executable, "-c", WAITS, kubeconfig], stdout=subprocess.PIPE, text=True) as program:
        assert program.stdout
        assert program.stdout.readline() == "ready\n"
        threading.Event().wait(0.5)
        program.send_signal(2)
        assert program.stdout.readline() == "interrupted\n"
        assert program.stdout.readline() == "1\n"
        assert program.wait(60) == 0
