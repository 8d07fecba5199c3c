import { expect, test } from "vitest";
import type { Header } from "../timeline/header";
import { firstPage, fits } from "./first-page";

const of = (change: Partial<Header>): Header => ({ totalEvents: 0, counters: [], parts: [], ...change }) as unknown as Header;

test.each([
  ["a report of Nsight Compute", of({ parts: ["profiles"] }), { page: "analyses", analysis: "profiled-kernels" }],
  ["a profile of memory", of({ parts: ["stacks"] }), { page: "analyses", analysis: "memory-profile" }],
  ["a dump of programs", of({ parts: ["programs"] }), { page: "analyses", analysis: "hlo-operations" }],
  ["a trace with programs", of({ totalEvents: 5, parts: ["programs"] }), { page: "overview" }],
  ["metrics alone", of({ counters: [{ source: "nvml", device: "gpu0", metric: "power", unit: "W" }], parts: ["stacks"] }), { page: "overview" }],
  ["nothing", of({}), { page: "overview" }],
])("%s is first looked at where it has something", (_, header, page) => {
  expect(firstPage(header, true)).toEqual(page);
});

test("where no analysis can be run, a report is looked at on the overview", () => {
  expect(firstPage(of({ parts: ["profiles"] }), false)).toEqual({ page: "overview" });
});

test("of chosen pages an empty timeline and empty tables are left", () => {
  expect(fits("timeline", of({}))).toBe(false);
  expect(fits("timeline", of({ totalEvents: 1 }))).toBe(true);
  expect(fits("tables", of({ parts: ["stacks"] }))).toBe(false);
  expect(fits("tables", of({ parts: ["profiles"] }))).toBe(true);
  expect(fits("overview", of({}))).toBe(true);
});
