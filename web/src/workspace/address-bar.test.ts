import { beforeEach, expect, test, vi } from "vitest";
import { AddressBar } from "./address-bar";

/** A history as browsers have it, as far as entries go. */
class Entries {
  readonly all = ["start"];
  pushState(_: unknown, __: string, address: string): void {
    this.all.push(address);
  }
  replaceState(_: unknown, __: string, address: string): void {
    this.all[this.all.length - 1] = address;
  }
}

let entries: Entries;
let seen: string;
let bar: AddressBar;

beforeEach(() => {
  vi.useFakeTimers();
  entries = new Entries();
  seen = "page 1";
  bar = new AddressBar(entries as unknown as History, () => seen);
});

test("moving and zooming stay one entry, which is written when there is rest", () => {
  for (const view of ["a", "b", "c"]) {
    seen = view;
    bar.update();
    vi.advanceTimersByTime(100);
  }
  expect(entries.all).toEqual(["start"]);
  vi.advanceTimersByTime(200);
  expect(entries.all).toEqual(["c"]);
});

test("a jump leaves an entry of what was seen last, and what is seen next has its own", () => {
  seen = "page 1, moved";
  bar.update();
  bar.leave();
  seen = "page 2";
  bar.update();
  vi.advanceTimersByTime(200);
  seen = "page 2, moved";
  bar.update();
  vi.advanceTimersByTime(200);
  expect(entries.all).toEqual(["page 1, moved", "page 2, moved"]);
});

test("the entry of a jump is there at once", () => {
  bar.leave();
  seen = "page 2";
  bar.update();
  vi.advanceTimersByTime(1);
  expect(entries.all).toEqual(["page 1", "page 2"]);
});

test("a jump to what is seen already has no entry of its own", () => {
  bar.leave();
  bar.update();
  vi.advanceTimersByTime(200);
  expect(entries.all).toEqual(["page 1"]);
});

test("jumps one behind the other have an entry each", () => {
  bar.leave();
  seen = "page 2";
  bar.update();
  bar.leave();
  seen = "page 3";
  bar.update();
  vi.advanceTimersByTime(200);
  expect(entries.all).toEqual(["page 1", "page 2", "page 3"]);
});

test("what was to be written of an entry is not written over the one that Back led to", () => {
  seen = "page 2";
  bar.leave();
  seen = "page 3";
  bar.update();
  bar.arrive("page 2");
  vi.advanceTimersByTime(1000);
  expect(entries.all).toEqual(["page 2"]);
});
