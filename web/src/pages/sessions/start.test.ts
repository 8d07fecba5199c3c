import { expect, test } from "vitest";
import { runOf } from "./start";

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
