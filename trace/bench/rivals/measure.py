"""What every rival says of itself: one line of JSON."""

import json
import resource
import time


def run(job):
    """Runs `job`, which gives a dictionary of counts, and prints its time and the process's peak of memory."""
    start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF)
    counts = job()
    seconds, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF)
    user, system = after.ru_utime - before.ru_utime, after.ru_stime - before.ru_stime
    times = {"seconds": seconds, "cpu_seconds": user + system, "user_seconds": user}
    print(json.dumps({**times, "peak_bytes": after.ru_maxrss * 1024, **counts}))
