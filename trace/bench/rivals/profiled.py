"""Every metric of every launch of a report of Nsight Compute, by NVIDIA's own reader."""

import sys

import ncu_report

import measure


def job():
    launches, values, total = 0, 0, 0.0
    for part in ncu_report.load_report(sys.argv[1]):
        for action in part:
            launches += 1
            for name in action.metric_names():
                total += action.metric_by_name(name).as_double()
                values += 1
    return {"launches": launches, "values": values, "sum": total}


measure.run(job)
