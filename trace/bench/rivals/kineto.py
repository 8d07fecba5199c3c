"""The columns that a Kineto trace becomes, with orjson and numpy; or what HolisticTraceAnalysis makes of it, as the second
argument says."""

import sys

import measure


def with_orjson():
    import numpy as np
    import orjson

    with open(sys.argv[1], "rb") as file:
        document = orjson.loads(file.read())
    columns = {}
    rows, names = {}, {}
    for event in document["traceEvents"]:
        if event["ph"] != "X":
            continue
        category = event["cat"]
        column = columns.setdefault(category, ([], [], [], [], [], []))
        arguments = event["args"]
        column[0].append(event["ts"])
        column[1].append(event["dur"])
        column[2].append(rows.setdefault((event["pid"], event["tid"]), len(rows)))
        column[3].append(names.setdefault((category, event["name"]), len(names)))
        column[4].append(arguments.get("correlation", 0))
        if category == "kernel":
            column[5].append((*arguments["grid"], *arguments["block"], arguments["registers per thread"],
                              arguments["shared memory"], arguments["External id"]))
        elif category == "cpu_op":
            column[5].append((arguments["External id"], arguments["Sequence number"], arguments["Fwd thread id"]))
        else:
            column[5].append((arguments["External id"],))
    events = total = 0
    for start, length, row, name, correlation, own in columns.values():
        start = np.round(np.array(start, dtype=np.float64) * 1000).astype(np.int64)
        length = np.round(np.array(length, dtype=np.float64) * 1000).astype(np.int64)
        row, name, correlation = (np.array(values, dtype=np.uint32) for values in (row, name, correlation))
        own = np.array(own, dtype=np.uint64)
        events += len(start)
        total += int(length.sum())
    return {"events": events, "total_ns": total}


def with_hta():
    from hta.common.trace_parser import parse_trace_dataframe
    from hta.configs.parser_config import ParserConfig

    parsed = parse_trace_dataframe(sys.argv[1], ParserConfig.get_default_cfg())
    return {"events": len(parsed[1])}


measure.run(with_orjson if sys.argv[2] == "orjson" else with_hta)
