"""Prints what NVIDIA's own reader finds in a report of Nsight Compute: per launch its name, and each metric's value and unit."""

import json
import sys

import ncu_report


def value(metric):
    kind = metric.kind()
    if kind == metric.ValueKind_STRING:
        return metric.as_string()
    if kind in (metric.ValueKind_UINT32, metric.ValueKind_UINT64):
        return metric.as_uint64()
    return metric.as_double()


def main(path):
    report = ncu_report.load_report(path)
    launches = []
    for at in range(report.num_ranges()):
        part = report.range_by_idx(at)
        for number in range(part.num_actions()):
            action = part.action_by_idx(number)
            metrics = {name: action.metric_by_name(name) for name in action.metric_names()}
            told = {name: {"value": value(metric), "unit": metric.unit()} for name, metric in metrics.items() if metric.has_value()}
            launches.append({"name": action.name(action.NameBase_DEMANGLED), "metrics": told})
    json.dump(launches, sys.stdout)


main(sys.argv[1])
