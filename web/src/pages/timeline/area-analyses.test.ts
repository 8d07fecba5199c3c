import { expect, test } from "vitest";
import { ANALYSES } from "../../generated/catalogue";
import { AREA_ANALYSES, parametersOf } from "./area-analyses";

test.each(AREA_ANALYSES)("the analysis %s can be asked for an area", (name) => {
  const analysis = ANALYSES.find((analysis) => analysis.name === name);
  expect(Object.keys(analysis?.parameters ?? {})).toEqual(expect.arrayContaining(Object.keys(parametersOf({ from: 0, to: 1 }))));
});

test("an area is asked for in whole ns, and from the window's begin on", () => {
  expect(parametersOf({ from: 10.7, to: 20.2 })).toEqual({ from_ns: "10", to_ns: "21" });
  expect(parametersOf({ from: -50, to: -20 })).toEqual({ from_ns: "0", to_ns: "1" });
});
