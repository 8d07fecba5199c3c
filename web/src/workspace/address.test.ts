import { expect, test } from "vitest";
import { hashOf, landingPage, parseAddress, USUAL } from "./address";

test("an address comes back as it was written", () => {
  const address = {
    page: "tables",
    session: "0badcafe",
    analysis: "nvtx_sum",
    table: "memcpy_time",
    parameters: { from_ns: "5", name_contains: "a&b" },
    others: ["local/b.h5/b.h5", "0badcafe/c"],
    from: -10,
    to: 5000,
    selected: { category: "cuda_kernel", index: 5 },
    search: "a & b=#",
    coloring: "classic" as const,
    hidden: ["cuda_api", "nvtx_range"],
    timeFormat: "utc" as const,
    area: { from: -5, to: 900, rows: [0, 1, 2, 7] },
    marks: [{ from: 5, to: 5 }, { from: -20, to: -10 }],
    pinned: ["row/3", "counter/nvml/gpu0/power, drawn"],
    filter: "stream 7 & 8",
  };
  expect(parseAddress("?file=a%20b.h5", hashOf(address))).toEqual({ ...address, file: "a b.h5" });
});

test("an address tells events and times of before the window", () => {
  const address = parseAddress("", "#t=-9000--1000&sel=prelude.nvtx_range:5");
  expect(address).toMatchObject({ from: -9000, to: -1000, selected: { category: "prelude.nvtx_range", index: 5 } });
  expect(parseAddress("", hashOf(address))).toEqual(address);
});

test.each([
  ["#area=5-1:0", undefined],
  ["#area=0-10", undefined],
  ["#area=0-10:x,-1", undefined],
  ["#area=0-10:3,0-1", { from: 0, to: 10, rows: [3, 0, 1] }],
])("the area of %s is %o", (hash, area) => {
  expect(parseAddress("", hash).area).toEqual(area);
});

test("an address names no more rows than a file may have", () => {
  expect(parseAddress("", "#area=0-10:0-9999999").area?.rows.length).toBe(65_536);
});

test("an address that nobody wrote is as usual", () => {
  expect(parseAddress("", "#p.A=1&table=../x&t=9-1&marks=4-3,x&area=1&sel=x&time=never&session=../x&color=pink&hide=,A b&analysis=A/b&with=A b")).toMatchObject({ coloring: "category", hidden: [], file: undefined, session: undefined, analysis: undefined, from: undefined, selected: undefined, timeFormat: "auto", search: "", table: undefined, parameters: {}, others: [], area: undefined, marks: [], pinned: [], filter: "" });
});

test("an address where everything is as usual is empty", () => {
  expect(hashOf(USUAL)).toBe("#");
  expect(parseAddress("", "#")).toEqual({ ...USUAL, file: undefined });
});

test("an address without a page leads to the overview, unless it tells a time or an event", () => {
  expect(landingPage(parseAddress("?file=a.h5", ""))).toBe("overview");
  expect(landingPage(parseAddress("?file=a.h5", "#q=gemm"))).toBe("overview");
  expect(landingPage(parseAddress("?file=a.h5", "#t=0-5000"))).toBe("timeline");
  expect(landingPage(parseAddress("?file=a.h5", "#sel=cuda_kernel:5"))).toBe("timeline");
});
