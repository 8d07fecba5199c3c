import { expect, test } from "vitest";
import { traceUrl } from "./perfetto";

test.each([
  ["https://g.example/x/api/profiling/timeline/0badcafe.h5?capture=a", "https://g.example/x/api/profiling/session/0badcafe/artifacts/timeline.pftrace?capture=a"],
  ["http://127.0.0.1:1/v1/namespaces/local/captures/c/artifacts/timeline.h5", "http://127.0.0.1:1/v1/namespaces/local/captures/c/artifacts/timeline.pftrace"],
  ["https://files.example/timeline.h5", undefined],
])("the trace for Perfetto of %s is beside it", (file, trace) => {
  expect(traceUrl(file)).toBe(trace);
});
