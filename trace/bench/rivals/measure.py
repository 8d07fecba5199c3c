"""What every rival says of itself: one line of JSON."""

import json
import resource
import time


def run(job):
    """Runs `job`, which gives a dictionary of counts, and prints its time and the process's peak of memory."""
    start, cpu = time.perf_counter(), time.process_time()
    counts = job()
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"seconds": seconds, "cpu_seconds": cpu, "peak_bytes": peak, **counts}))
