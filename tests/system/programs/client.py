"""The package's clients of a user who may, and of one who may not: `client.py USER STRANGER TOKEN FOLDER`, kubeconfigs and the stranger's token."""

import asyncio
import sys
from pathlib import Path

import h5py
import pyarrow
import pyarrow.parquet

import flopwatch

user, stranger, token, folder = sys.argv[1:]
client = flopwatch.Client(kubeconfig=user)


def same(first, second):
    assert pyarrow.table(first).equals(pyarrow.table(second))


def profiled():
    made = client.run("pod/trainer", duration=2, require="nvtx_range", name="mine")
    assert made.phase != "succeeded", made
    ended = client.wait("mine", timeout=180)
    assert (ended.phase, len(ended.captures)) == ("succeeded", 1), ended
    assert {artifact.name for artifact in ended.captures[0].artifacts} >= {"timeline.h5", "summary.json"}, ended
    assert client.sessions() == [ended], client.sessions()
    assert client.session("mine").captures[0].pod == "trainer"


def read():
    (path,) = client.fetch("mine", folder, artifacts=["timeline.h5"])
    local = flopwatch.open(path)
    remote = client.open("mine")
    assert remote.categories == local.categories
    same(remote.rows(), local.rows())
    same(remote.events("os_runtime"), local.events("os_runtime"))
    assert 0 < remote.bytes_read < remote.size == Path(path).stat().st_size, (remote.bytes_read, remote.size, remote.categories)
    print(f"{remote.bytes_read} of {remote.size} bytes")
    same(remote.events("nvtx_range"), local.events("nvtx_range"))
    assert remote.summary()["total_events"] == sum(local.categories.values())
    for analysis in ("nvtx_sum", "osrt_sum", "threads"):
        expected = local.analyze(analysis).to_dict()
        assert remote.analyze(analysis).to_dict() == client.analyze("mine", analysis).to_dict() == expected, analysis
    assert remote.render("nvtx_sum") == local.render("nvtx_sum")
    assert client.analyze("mine", "compare", others=["mine"]).verdict
    with client.file("mine", "timeline.h5") as file:
        with h5py.File(file) as opened:
            assert len(opened["nvtx_range/start_ns"]) == local.categories["nvtx_range"]
        assert file.bytes_read <= file.size
    with client.file("mine", "timeline.parquet") as file:
        rows = pyarrow.parquet.read_table(file, columns=["category"]).num_rows
        assert rows == sum(local.categories.values())
    return local


async def awaited(local):
    several = flopwatch.AsyncClient(kubeconfig=user)
    remote, sessions = await asyncio.gather(several.open("mine"), several.sessions())
    assert [session.name for session in sessions] == ["mine"]
    same(await remote.events("nvtx_range"), local.events("nvtx_range"))
    try:
        await several.session("nothing")
    except flopwatch.NotFoundError as error:
        assert error.reason == "NotFound", error
    else:
        raise AssertionError("there is no such session")


def refused():
    """Whoever may not hears the same of what is there and of what is not."""
    other = flopwatch.Client(kubeconfig=stranger)
    calls = {
        "run": lambda name: other.run("trainer", name=name),
        "sessions": lambda _: other.sessions(),
        "session": other.session,
        "wait": other.wait,
        "stop": other.stop,
        "fetch": lambda name: other.fetch(name, folder),
        "open": other.open,
        "file": lambda name: other.file(name, "timeline.h5"),
        "analyze": lambda name: other.analyze(name, "nvtx_sum"),
    }
    for what, call in calls.items():
        said = []
        for name in ("mine", "none"):
            try:
                call(name)
            except flopwatch.ForbiddenError as error:
                assert error.reason == "Forbidden", (what, error)
                assert "you may not" in str(error) and "flopwatch-user" in str(error), (what, error)
                said.append(str(error).replace(name, "NAME"))
            else:
                raise AssertionError(f"{what} was not refused")
        assert said[0] == said[1], said
    # Rights at the API server do not stand for a token that has none.
    lent = flopwatch.Client(kubeconfig=user, token=token)
    for call in (lent.open, lambda name: lent.analyze(name, "nvtx_sum"), lambda name: lent.fetch(name, folder, overwrite=True, artifacts=["summary.json"])):
        try:
            call("mine")
        except flopwatch.ForbiddenError as error:
            assert "the gateway answers 403" in str(error) and "trainer" not in str(error), error
        else:
            raise AssertionError("a token without rights was served")


profiled()
asyncio.run(awaited(read()))
refused()
print("done")
