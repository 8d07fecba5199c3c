"""Prints what NVIDIA's own reader says of the machine code in a report of Nsight Compute: per launch the place, the PTX and the text (SASS) of the
instructions from its first on, sixteen bytes each. The second argument is how many bytes each launch has, with commas between."""

import json
import sys

import ncu_report

INSTRUCTION = 16


def place(action, address):
    info = action.source_info(address)
    return info and [info.file_name(), info.line()]


def main(path, lengths):
    report = ncu_report.load_report(path)
    parts = [report.range_by_idx(at) for at in range(report.num_ranges())]
    actions = [part.action_by_idx(number) for part in parts for number in range(part.num_actions())]
    launches = []
    for action, length in zip(actions, lengths, strict=True):
        entry = action.metric_by_name("launch__function_pcs").as_uint64(0)
        addresses = range(entry, entry + length, INSTRUCTION)
        launches.append({
            "entry": entry,
            "places": [place(action, address) for address in addresses],
            "ptx": [action.ptx_by_pc(address) for address in addresses],
            "sass": [action.sass_by_pc(address) for address in addresses],
        })
    json.dump(launches, sys.stdout)


main(sys.argv[1], [int(length) for length in sys.argv[2].split(",")])
