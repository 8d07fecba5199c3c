import { expect, test } from "vitest";
import type { Branch } from "../../view/tree";
import { beganOf, gpusOf, lengthOf, programsOf } from "./facts";

const branch = (key: string, label: string): Branch => ({ kind: "group", key, label, children: [] });

test("GPUs of one name are counted, those without a name are left out", () => {
  expect(gpusOf(["H100", "A100", "H100", ""])).toBe("2 × H100, A100");
  expect(gpusOf([""])).toBeUndefined();
});

test("programs are named once, without the numbers of their processes and ranks", () => {
  const tree = [branch("counters/nvml/gpu0", "nvml: gpu0"), branch("process/0/0/1", "python (4711)"), branch("process/1/0/1", "python ([TP01] 4712)"), branch("process/0/0/2", "sh (2)")];
  expect(programsOf(tree)).toBe("python, sh");
  expect(programsOf(["a", "b", "c", "d", "e"].map((name, at) => branch(`process/0/0/${at}`, `${name} (${at})`)))).toBe("a, b, c and 2 more");
  expect(programsOf([branch("process/0/0/0", "capture"), branch("process/0/0/9", "process 9")])).toBeUndefined();
});

test("a window much longer than what happened in it does not stand for the length", () => {
  expect(lengthOf({ durationNs: 119.4e9 }, 300e6)).toBe("300 ms from the first event to the last, in a window of 119.4 s");
  expect(lengthOf({ durationNs: 310e6 }, 300e6)).toBe("310 ms");
  expect(lengthOf({ durationNs: 5e9 }, 0)).toBe("5 s");
});

test("a capture began at a time that is read at a glance", () => {
  expect(beganOf("1784567890123456789")).toBe("2026-07-20 17:18:10 UTC");
});
