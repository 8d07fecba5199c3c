"""What every rival says of itself: one line of JSON."""

import json
import resource
import time


def run(job):
    """Runs `job`, which gives a dictionary of counts, and prints its time and the process's peak of memory."""
    start = time.perf_counter()
    counts = job()
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"seconds": seconds, "peak_bytes": peak, **counts}))
