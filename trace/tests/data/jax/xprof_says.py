"""What XProf says of XPlane profiles, as a JSON list: `python xprof_says.py PROFILE...`."""
import glob
import json
import os
import shutil
import sys
import tempfile

from xprof.convert import raw_to_tool_data

MODULE = ".hlo_proto.pb"


def rows(table):
    names = [column["id"] for column in table["cols"]]
    return [dict(zip(names, (cell["v"] for cell in row["c"]))) for row in table["rows"]]


def said(profile):
    # XProf writes what it keeps beside the profile.
    with tempfile.TemporaryDirectory() as folder:
        copy = shutil.copy(profile, folder)

        def tool(name, **parameters):
            return raw_to_tool_data.xspace_to_tool_data([copy], name, parameters)[0]

        raw_to_tool_data.xspace_to_tool_names([copy])
        modules = {}
        for path in sorted(glob.glob(f"{folder}/*{MODULE}")):
            name = os.path.basename(path)[: -len(MODULE)]
            memory = json.loads(tool("memory_viewer", module_name=name))
            text = lambda form: tool("graph_viewer", graph_viewer_options={"type": form, "module_name": name}).decode()
            modules[name] = {
                "memory": {key: memory.get(key) for key in MEMORY},
                "long": text("long_txt"),
                "short": text("short_txt"),
            }
        allocators = json.loads(tool("memory_profile"))["memoryProfilePerAllocator"]
        return {
            "operations": rows(json.loads(tool("hlo_stats"))),
            "framework": rows(json.loads(tool("framework_op_stats"))[0]),
            "programs": json.loads(tool("op_profile"))["byProgram"]["children"],
            "allocators": {name: one["profileSummary"] for name, one in allocators.items()},
            "modules": modules,
        }


MEMORY = (
    "heapSizes",
    "hloInstructionNames",
    "peakHeapMib",
    "entryComputationParametersMib",
    "maybeLiveOutMib",
    "totalBufferAllocationMib",
    "indefiniteBufferAllocationMib",
    "maxHeap",
)

if __name__ == "__main__":
    json.dump([said(profile) for profile in sys.argv[1:]], sys.stdout)
