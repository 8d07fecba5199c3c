import { expect, test } from "vitest";
import type { PageCell, PageTable } from "../generated/catalogue";
import { filtered, isNumeric, sorted } from "./rows";

const rowOf = (...cells: PageCell[]) => ({ cells, place: null });

test("rows are sorted with the unknown last, and filtered by their texts", () => {
  const rows = [rowOf("b", 2), rowOf("A", null), rowOf("c", 10)];
  expect(sorted(rows, 1, true).map(({ cells }) => cells[0])).toEqual(["b", "c", "A"]);
  expect(sorted(rows, 1, false).map(({ cells }) => cells[0])).toEqual(["c", "b", "A"]);
  expect(filtered(rows, "a").map(({ cells }) => cells[0])).toEqual(["A"]);
  const table: PageTable = { title: "", about: "", columns: [], rows, left_out: 0 };
  expect([isNumeric(table, 0), isNumeric(table, 1)]).toEqual([false, true]);
});
