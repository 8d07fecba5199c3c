import { expect, test } from "vitest";
import type { PageCell, PageUnit } from "../generated/catalogue";
import { csvHead, inCell, printable, shown, titleOf } from "./figure";

test.each<[PageCell, PageUnit, string]>([
  [0, "ns", "0 ns"],
  [999, "ns", "999 ns"],
  [999.999, "ns", "1.00 µs"],
  [12.5, "ns", "12.50 ns"],
  [-1500, "ns", "-1.50 µs"],
  [2_500_000, "ns", "2.50 ms"],
  [3_600_000_000_000, "ns", "3600.00 s"],
  [60_391_234_567, "instant", "60.391235 s"],
  [1_000_000, "bytes", "1.00 MB"],
  [2.0e12, "bytes_per_second", "2.00 TB/s"],
  [362, "count", "362"],
  [32_715_571_200, "count", "32.72 G"],
  [9.89e14, "flop_per_second", "989.00 TFLOP/s"],
  [0.125, "ratio", "12.5 %"],
  [0.00012, "ratio", "0.012 %"],
  [50, "percent", "50.0 %"],
  [1_234_567, "none", "1234567"],
  [1.5, "none", "1.5"],
  [0.000012, "none", "1.200e-5"],
  [true, "none", "yes"],
  [null, "ns", ""],
])("%s of unit %s is shown as the terminal and the HTML file show it: %s", (cell, unit, expected) => {
  expect(shown(cell, unit)).toBe(expected);
});

test("a column says its digits, its unit once, and its name for programs", () => {
  expect(shown(33.349, "percent", 1)).toBe("33.3 %");
  expect(shown(5, "none", 1)).toBe("5");
  const column = { title: "Total Time (ns)", name: "", unit: "ns" as const, decimals: null, about: "" };
  expect([titleOf(column), csvHead(column)]).toEqual(["Total Time", "Total Time (ns)"]);
  expect([{ ...column, title: "Busy" }, { ...column, name: "busy_ns" }].map(csvHead)).toEqual(["Busy (ns)", "busy_ns"]);
});

test("what would turn or hide the text after it is not shown", () => {
  expect(printable("a\u202eb\u0007c")).toBe("a\ufffdb\ufffdc");
});

test("a name is short in a cell and keeps what tells it from others, a sentence is whole", () => {
  const name = (type: string) => `void at::native::elementwise_kernel<4, at::native::FillFunctor<${type}>${", at::detail::Array<char*, 1>".repeat(8)} >(int)`;
  const sentence = "The host launches too slowly; DDP bucket_cap_mb, FSDP_prefetch and --xla_gpu_enable_latency_hiding_scheduler help. ".repeat(8).trim();
  expect(inCell(name("float"))).toMatch(/^elementwise_kernel<4, FillFunctor<float>, (Array<char\*, 1>(, |>$)){8}/);
  expect(inCell(name("float"))).not.toBe(inCell(name("double")));
  expect(inCell(sentence)).toBe(sentence);
  expect([...inCell("x".repeat(100_000))].length).toBeLessThanOrEqual(2_000);
});
