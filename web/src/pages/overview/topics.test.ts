import { expect, test } from "vitest";
import type { Summary } from "../../generated/catalogue";
import { topicsOf } from "./topics";

const summary = (...missing: string[]) => ({ categories: [{ captured: true, category: "cuda_kernel" }, ...missing.map((category) => ({ captured: false, category }))] }) as Pick<Summary, "categories">;

test("what was not checked is told by its topic and why, what was not captured in one topic", () => {
  const advice = { not_captured: [{ what: "GPU memory headroom", reason: "profile with profile_memory=True" }, { what: "use of tensor cores", reason: "no GPU work" }] };
  expect(topicsOf(advice, summary("os_runtime", "cpu_op"))).toEqual([
    { what: "GPU memory headroom", why: "not checked: profile with profile_memory=True" },
    { what: "Use of tensor cores", why: "not checked: no GPU work" },
    { what: "Kinds of events", why: "not captured, which is not the same as none: os runtime, cpu op" },
  ]);
});

test("where everything was looked at there is no topic", () => {
  expect(topicsOf({ not_captured: [] }, summary())).toEqual([]);
  expect(topicsOf(undefined, summary())).toEqual([]);
});
