import { expect, test } from "vitest";
import { looksLikeProfile } from "./dropped";

test.each([
  ['[{"operation": "load", "duration_ms": 2.5}]', true],
  ['\n{"entries": [], "summary": {"load": {"operation": "load", "call_count": 1}}}', true],
  ['{"traceEvents": [{"operation": "x", "duration_ms": 1}]}', false],
  ["operation,duration_ms", false],
  ['{"operation": 1}', false],
])("of %s one is told what helps with a profile: %s", (beginning, is) => {
  expect(looksLikeProfile(beginning)).toBe(is);
});
