"""Reads CSV of Nsight Compute with the standard library alone and prints what the reader under test must have found."""

import csv
import sys
from collections import defaultdict


def main(path):
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    metrics = defaultdict(dict)
    for row in rows:
        try:
            value = float(row["Metric Value"].replace(",", ""))
        except ValueError:
            continue
        section = row["Section Name"]
        name = row["Metric Name"]
        key = name if section == "Command line profiler metrics" else f"{section}: {name}"
        metrics[row["ID"]][key] = value
    print("launches", "count", len({row["ID"] for row in rows}))
    print("metrics", "count", sum(len(found) for found in metrics.values()))
    print("metrics", "millionths", sum(round(value * 10**6) for found in metrics.values() for value in found.values()))
    rules = sum(1 for row in rows if row.get("Rule Name") and row["Rule Description"])
    print("rules", "count", rules)
    print("drops", "count", len(rows) - rules - sum(1 for row in rows if number(row["Metric Value"])))
    print("block", "x", sum(int(row["Block Size"].strip("()").split(",")[0]) for row in {r["ID"]: r for r in rows}.values()))


def number(text):
    try:
        float(text.replace(",", ""))
    except ValueError:
        return False
    return True


main(sys.argv[1])
