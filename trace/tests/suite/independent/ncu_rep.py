"""Prints what NVIDIA's own reader finds in a report of Nsight Compute: per launch its name, each metric's value, unit and parts, and more."""

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


def parts(metric):
    """Keys and values of a metric's instances."""
    count = metric.num_instances()
    if count == 0:
        return None
    keys = metric.correlation_ids() if metric.has_correlation_ids() else None
    return [[one(keys, at) for at in range(count)] if keys else [], [one(metric, at) for at in range(count)]]


def one(metric, at):
    kind = metric.kind(at)
    if kind == metric.ValueKind_STRING:
        return metric.as_string(at)
    if kind in (metric.ValueKind_UINT32, metric.ValueKind_UINT64):
        return metric.as_uint64(at)
    return metric.as_double(at)


def rules(action):
    """What rules said: identifier, name, section, title, message, kind, metrics, estimated speed-up."""
    told = []
    for rule in action.rule_results_as_dicts():
        message = rule["rule_message"]
        metrics = [[metric["name"], metric["value"], metric["info"]] for metric in rule.get("focus_metrics", [])]
        worth = rule.get("speedup_estimation")
        worth = worth and [worth["type"], worth["speedup"]]
        who = [rule["rule_identifier"], rule["name"], rule["section_identifier"]]
        told.append([*who, message["title"], message["message"], message["type"], metrics, worth])
    return told


def ranges(action):
    """Per domain its name, the ranges on the stack, and those without a thread."""
    state = action.nvtx_state()
    if state is None:
        return []
    domains = [state.domain_by_id(domain) for domain in state.domains()]
    return [[domain.name(), list(domain.push_pop_ranges()), list(domain.start_end_ranges())] for domain in domains]


def main(path):
    report = ncu_report.load_report(path)
    launches = []
    for at in range(report.num_ranges()):
        part = report.range_by_idx(at)
        for number in range(part.num_actions()):
            action = part.action_by_idx(number)
            metrics = {name: action.metric_by_name(name) for name in action.metric_names()}
            told = {name: {"value": value(metric), "unit": metric.unit()} for name, metric in metrics.items() if metric.has_value()}
            instances = {name: parts(metric) for name, metric in metrics.items()}
            launches.append({
                "name": action.name(action.NameBase_DEMANGLED),
                "metrics": told,
                "instances": {name: found for name, found in instances.items() if found},
                "rules": rules(action),
                "ranges": ranges(action),
                "sections": sorted(section.identifier() for section in action.sections()),
            })
    json.dump(launches, sys.stdout)


main(sys.argv[1])
