import { beforeEach, expect, test } from "vitest";
import { type Address, USUAL } from "./address";
import { Appearance } from "./appearance";

class Shown extends Appearance {
  told = 0;
  protected override altered(): void {
    this.told += 1;
  }
  link() {
    return this.linked;
  }
  follow(link: Pick<Address, "marks" | "pinned" | "filter">) {
    this.arrangeAs(link);
  }
}

let shown: Shown;

beforeEach(() => {
  shown = new Shown(USUAL);
});

test("what was set once is taken back by setting it again, and each time it is told", () => {
  for (const set of [() => shown.fold("a"), () => shown.pin("row/1"), () => shown.toggleCategory("nvtx_range"), () => shown.mark({ from: 1, to: 2 })]) {
    set();
  }
  expect([shown.arrangement.folded.has("a"), shown.arrangement.pinned, [...shown.hidden], shown.marks.length]).toEqual([true, ["row/1"], ["nvtx_range"], 1]);
  for (const set of [() => shown.fold("a"), () => shown.pin("row/1"), () => shown.toggleCategory("nvtx_range"), () => shown.mark({ from: 1, to: 2 })]) {
    set();
  }
  expect([shown.arrangement.folded.size, shown.arrangement.pinned.length, shown.hidden.size, shown.marks.length]).toEqual([0, 0, 0, 0]);
  expect(shown.told).toBe(8);
});

test("a link holds marks, pinned rows and the filter, and another one that follows it looks the same", () => {
  shown.mark({ from: 5, to: 5 });
  shown.pin("row/3");
  shown.arrange({ filter: "stream" });
  shown.setColoring("name");
  const other = new Shown({ ...USUAL, ...shown.link() });
  other.follow(shown.link());
  expect(other.link()).toEqual(shown.link());
  expect(other.byName).toBe(true);
});

test("what a link does not say of rows stays as it is", () => {
  shown.fold("process/0/0/7");
  shown.follow({ marks: [], pinned: ["row/1"], filter: "" });
  expect(shown.arrangement).toMatchObject({ folded: new Set(["process/0/0/7"]), pinned: ["row/1"] });
});
