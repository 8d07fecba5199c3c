import { expect, test } from "vitest";
import { CUT } from "../generated/catalogue";
import { cutOf } from "./cut";
import { seemsCut } from "./header";

test("a file that ends before its end is one that was cut; one with ranges that were open is not", () => {
  const cut = CUT.map((what) => ({ reason: "truncated", what, count: 1 }));
  const whole = [
    { reason: "truncated", what: "NVTX ranges without an end", count: 3 },
    { reason: "dropped", what: CUT[0], count: 1 },
  ];
  expect(cutOf([...whole, ...cut])).toEqual(cut);
  expect(cutOf(whole)).toEqual([]);
  expect(cut.every(seemsCut)).toBe(true);
  expect(whole.some(seemsCut)).toBe(false);
});
