import { expect, test } from "vitest";
import { traceUrl } from "../ui/perfetto";
import { runOf } from "../ui/sessions/start";
import { Gateway, problemOf } from "./client";

function form(fields: readonly (readonly [string, string])[]): FormData {
  const form = new FormData();
  for (const [name, value] of fields) {
    form.append(name, value);
  }
  return form;
}

const LEAST = [
  ["mode", "auto"],
  ["namespace", " team "],
  ["pod", "train"],
  ["duration", "7"],
] as const;

test("what a form leaves empty is not asked for", () => {
  expect(runOf(form([...LEAST, ["deadline", ""], ["ttl", ""]]))).toEqual({
    mode: "auto",
    target: { namespace: "team", pod: "train", containers: [] },
    options: { duration_seconds: 7 },
  });
});

test("what a form holds is asked for", () => {
  const fields = [...LEAST, ["container", "main"], ["require", "cuda_kernel"], ["require", "nvtx_range"], ["output", "Raw"], ["deadline", "60"], ["ttl", "0"]] as const;
  expect(runOf(form(fields))).toMatchObject({
    target: { containers: ["main"] },
    options: { require: ["cuda_kernel", "nvtx_range"], outputs: ["Raw"], start_deadline_seconds: 60, ttl_seconds_after_finished: 0 },
  });
});

test("pods are asked for by labels, too", () => {
  const labels = (text: string) => runOf(form([...LEAST, ["by", "labels"], ["labels", text], ["most", "4"]])).target;
  expect(labels("app=train, tier=")).toEqual({ namespace: "team", containers: [], selector: { app: "train", tier: "" }, max_pods: 4 });
  for (const none of ["train", "a=b=c", "a=b,", "=b", "a b=c"]) {
    expect(() => labels(none), none).toThrow("app=train,role=worker");
  }
});

test("a copy of a pod is asked for by the pod's name", () => {
  expect(runOf(form([...LEAST, ["by", "copy"]])).target).toEqual({ namespace: "team", containers: [], replica_of: "train" });
});

test("a new pod is asked for by its manifest, and the namespace's default by nothing", () => {
  const of = (text: string) => runOf(form([...LEAST, ["by", "template"], ["template", text], ["start", "ContainerStart"]]));
  const made = of('{"kind": "Pod", "metadata": {"name": "x", "labels": {"app": "bench"}}, "spec": {"containers": []}}');
  expect(made.target).toEqual({ namespace: "team", containers: [], template: { metadata: { labels: { app: "bench" } }, spec: { containers: [] } } });
  expect(made.options.start).toBe("ContainerStart");
  for (const none of ["", "{", "[]", "null", '{"spec": 7}']) {
    expect(() => of(none), none).toThrow("needs `spec`");
  }
  expect(runOf(form([...LEAST, ["by", "default"]])).target).toEqual({ namespace: "team", containers: [] });
});

test.each([
  [Response.json({ reason: "Forbidden", detail: "You may not." }, { status: 403 }), { status: 403, reason: "Forbidden", message: "You may not." }],
  // What a proxy on the way may say.
  [new Response("<html>", { status: 502, statusText: "Bad Gateway" }), { status: 502, reason: "", message: "The server answers 502 Bad Gateway" }],
  [Response.json({ detail: 7 }, { status: 500 }), { status: 500, reason: "", message: "The server answers 500" }],
  [Response.json(null, { status: 500 }), { status: 500, reason: "", message: "The server answers 500" }],
])("an answer other than success is told in its own words (%#)", async (response, expected) => {
  expect(await problemOf(response)).toMatchObject(expected);
});

test("a link to a timeline holds where it is, and nothing of whoever made it", () => {
  const gateway = new Gateway("https://gateway.example/flopwatch/api/");
  const link = new URL(gateway.timelineHref("0badcafe", "train a", "tables"), "https://gateway.example/flopwatch/");
  expect(link.hash).toBe("#page=tables");
  expect(new URLSearchParams(link.search).get("file")).toBe("/flopwatch/api/profiling/timeline/0badcafe.h5?capture=train+a");
  expect([...link.searchParams.keys()]).toEqual(["file"]);
  expect(gateway.artifactUrl("0badcafe", "c", "../x")).toBe("https://gateway.example/flopwatch/api/profiling/session/0badcafe/artifacts/..%2Fx?capture=c");
});

test.each([
  ["https://g.example/x/api/profiling/timeline/0badcafe.h5?capture=a", "https://g.example/x/api/profiling/session/0badcafe/artifacts/timeline.pftrace?capture=a"],
  ["http://127.0.0.1:1/v1/namespaces/local/captures/c/artifacts/timeline.h5", "http://127.0.0.1:1/v1/namespaces/local/captures/c/artifacts/timeline.pftrace"],
  ["https://files.example/timeline.h5", undefined],
])("the trace for Perfetto of %s is beside it", (file, trace) => {
  expect(traceUrl(file)).toBe(trace);
});
