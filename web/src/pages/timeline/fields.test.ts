import { expect, test } from "vitest";
import { describe } from "./fields";

test("an event's columns are put into words, and what stands for none is left out", () => {
  const event = {
    category: 0, index: 0, start: 0, duration: 1000, row: 0, lane: 0, name: 0, text: "",
    fields: [["grid_x", 8], ["grid_y", 4], ["grid_z", 1], ["block_x", 256], ["block_y", 1], ["block_z", 1], ["launch", 5], ["shared_dynamic", 2048], ["graph_node", 0], ["bytes", 1_000_000], ["sequence", 2 ** 64]] as const,
  };
  expect(describe("cuda_kernel", event)).toEqual([
    ["grid", "8 × 4 × 1"],
    ["block", "256 × 1 × 1"],
    ["shared dynamic", "2 KiB"],
    ["bytes", "976.6 KiB (931.3 GiB/s)"],
  ]);
});

test("texts, shares and kinds of memory are said as such", () => {
  const event = {
    category: 0, index: 0, start: 0, duration: 1000, row: 0, lane: 0, name: 0, text: "",
    fields: [["src_memory_kind", 1], ["dst_memory_kind", 0], ["achieved_occupancy_ppm", 590_000], ["theoretical_occupancy_ppm", 0xffff_ffff], ["warps_per_sm_milli", 37_926], ["hlo_op", "fusion.3"], ["tf_op", ""]] as const,
  };
  expect(describe("cuda_kernel", event)).toEqual([
    ["src memory kind", "pageable"],
    ["achieved occupancy", "59 %"],
    ["warps per sm", "37.926"],
    ["hlo op", "fusion.3"],
  ]);
});
