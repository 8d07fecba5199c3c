import { type ComponentChildren, isValidElement, toChildArray } from "preact";
import { expect, test } from "vitest";
import type { Live } from "../../gateway/messages";
import { LiveFigures } from "./live";

/** The text of each paragraph and of each item of a list, in their order. */
function lines(nodes: ComponentChildren): string[] {
  return toChildArray(nodes).flatMap((node) => {
    if (!isValidElement(node)) {
      return [];
    }
    const { children } = node.props;
    return node.type === "p" || node.type === "li" ? [toChildArray(children).join("")] : lines(children);
  });
}

const shown = (live: Live) => lines(LiveFigures({ live }));

test("the categories with the most events stand first, and those without one nowhere", () => {
  const events = { cuda_api: 8_001, cuda_kernel: 1_234_567, cuda_sync: 0 };
  expect(shown({ events, latest_kernels: [] })).toEqual(["So far: cuda_kernel 1 234 567, cuda_api 8 001"]);
});

test("kernels stand in the order in which they come, each with its time and launches", () => {
  const latest_kernels = [
    { name: "at::native::gemm", calls: 3, total_ns: 2_500_000 },
    { name: "<b>relu</b>", calls: 1, total_ns: 700 },
  ];
  expect(shown({ events: { cuda_kernel: 4 }, latest_kernels })).toEqual([
    "So far: cuda_kernel 4",
    "at::native::gemm: 2.5 ms in 3 launches",
    // Text, whatever a program calls its kernels.
    "<b>relu</b>: 700 ns in 1 launch",
  ]);
});

test("a window that has recorded nothing says so", () => {
  expect(shown({ events: {}, latest_kernels: [] })).toEqual(["So far: no event"]);
});
