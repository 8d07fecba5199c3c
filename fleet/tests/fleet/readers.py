"""Reads a fleet with pyarrow, DuckDB and polars, and prints the same figures of each, and DuckDB's answers to the document's queries."""

import glob
import json
import os
import re
import sys

import duckdb
import polars
import pyarrow.compute as compute
import pyarrow.dataset as dataset

folder = sys.argv[1]
EXACT = ["calls", "total_ns", "min_ns", "max_ns", "median_ns", "window_ns", "probability_per_billion"]


def of_pyarrow():
    table = lambda name: dataset.dataset(f"{folder}/table={name}", format="parquet", partitioning="hive").to_table()
    rows, captures = table("rows"), table("captures")
    cells = rows["sketch"].combine_chunks().flatten()
    return {
        "rows": rows.num_rows,
        "sums": {name: compute.sum(rows[name]).as_py() for name in EXACT},
        "hashes": sorted(set(rows["name_hash"].to_pylist())),
        "names": sorted(set(rows["name"].to_pylist())),
        "without_sketch": rows["sketch"].null_count,
        "without_device": rows["device"].null_count,
        "buckets": [compute.sum(cells.field(part)).as_py() for part in ("bucket", "count")],
        "starts": sorted(set(rows["window_start"].cast("int64").to_pylist())),
        "dates": sorted(set(str(date) for date in rows["date"].to_pylist())),
        "captures": captures.num_rows,
        "failed": compute.sum(compute.invert(captures["succeeded"])).as_py(),
        "categories": sorted(captures["categories"].combine_chunks().flatten().to_pylist()),
        "busy": compute.sum(captures["gpu_busy_ns"]).as_py(),
        "unknown_busy": captures["gpu_busy_ns"].null_count,
        "versions": captures["schema_version"].to_pylist() == [1] * captures.num_rows,
    }


def of_duckdb():
    table = lambda name: f"read_parquet('{folder}/table={name}/*/*/*.parquet', hive_partitioning = true)"
    rows, captures = table("rows"), table("captures")
    one = lambda sql: duckdb.sql(sql).fetchall()[0]
    every = lambda sql: [row[0] for row in duckdb.sql(sql).fetchall()]
    cells = f"(SELECT unnest(sketch) AS cell FROM {rows})"
    return {
        "rows": one(f"SELECT count(*) FROM {rows}")[0],
        "sums": {name: int(one(f"SELECT sum({name}) FROM {rows}")[0]) for name in EXACT},
        "hashes": every(f"SELECT DISTINCT name_hash FROM {rows} ORDER BY 1"),
        "names": sorted(every(f"SELECT DISTINCT name FROM {rows}")),
        "without_sketch": one(f"SELECT count(*) FROM {rows} WHERE sketch IS NULL")[0],
        "without_device": one(f"SELECT count(*) FROM {rows} WHERE device IS NULL")[0],
        "buckets": [int(value) for value in one(f"SELECT sum(cell.bucket), sum(cell.count) FROM {cells}")],
        "starts": every(f"SELECT DISTINCT epoch_ns(window_start) FROM {rows} ORDER BY 1"),
        "dates": every(f"SELECT DISTINCT CAST(date AS VARCHAR) FROM {rows} ORDER BY 1"),
        "captures": one(f"SELECT count(*) FROM {captures}")[0],
        "failed": one(f"SELECT count(*) FROM {captures} WHERE NOT succeeded")[0],
        "categories": sorted(every(f"SELECT unnest(categories) FROM {captures}")),
        "busy": int(one(f"SELECT sum(gpu_busy_ns) FROM {captures}")[0]),
        "unknown_busy": one(f"SELECT count(*) FROM {captures} WHERE gpu_busy_ns IS NULL")[0],
        "versions": one(f"SELECT bool_and(schema_version = 1) FROM {captures}")[0],
    }


def of_polars():
    table = lambda name: polars.read_parquet(f"{folder}/table={name}/**/*.parquet", hive_partitioning=True)
    rows, captures = table("rows"), table("captures")
    cells = rows["sketch"].drop_nulls().explode().struct
    return {
        "rows": rows.height,
        "sums": {name: rows[name].sum() for name in EXACT},
        "hashes": sorted(rows["name_hash"].unique().to_list()),
        "names": sorted(rows["name"].unique().to_list()),
        "without_sketch": rows["sketch"].null_count(),
        "without_device": rows["device"].null_count(),
        "buckets": [cells.field(part).sum() for part in ("bucket", "count")],
        "starts": sorted(rows["window_start"].dt.epoch("ns").unique().to_list()),
        "dates": sorted(str(date) for date in rows["date"].unique().to_list()),
        "captures": captures.height,
        "failed": (~captures["succeeded"]).sum(),
        "categories": sorted(captures["categories"].explode().drop_nulls().to_list()),
        "busy": captures["gpu_busy_ns"].sum(),
        "unknown_busy": captures["gpu_busy_ns"].null_count(),
        "versions": (captures["schema_version"] == 1).all(),
    }


def of_document():
    text = open(sys.argv[2], encoding="utf-8").read()
    queries = re.findall(r"```sql\n(.*?)```", text, flags=re.DOTALL)
    return [duckdb.sql(query.replace("fleet/v1", folder)).fetchall() for query in queries]


found = sorted(glob.glob(f"{folder}/**/*.parquet", recursive=True))
print(json.dumps({
    "files": len(found),
    "bytes": sum(map(os.path.getsize, found)),
    "pyarrow": of_pyarrow(),
    "duckdb": of_duckdb(),
    "polars": of_polars(),
    "document": of_document(),
}))
