import { expect, test } from "vitest";
import { chosen, goalBefore, listUrl } from "./prelude";

test("a link leads to a time before the window as soon as that is there, and to one in the window at once", () => {
  expect(goalBefore({ from: -9000, to: -1000 }, 1000)).toEqual({ from: -9000, to: -1000, row: undefined, fills: true });
  expect(goalBefore({ from: -10, to: 1000 }, 1000)).toBeUndefined();
  expect(goalBefore({ from: undefined, to: undefined }, 1000)).toBeUndefined();
});

test.each([
  ["https://g/api/profiling/timeline/0badcafe.h5?capture=a%2Fb", "https://g/api/profiling/session/0badcafe/artifacts?capture=a%2Fb"],
  ["http://127.0.0.1:4/v1/namespaces/n/captures/c/artifacts/timeline.h5", "http://127.0.0.1:4/v1/namespaces/n/captures/c/artifacts"],
  ["http://127.0.0.1:4/files/timeline.h5", undefined],
])("the artifacts beside %s are listed at %s", (file, list) => {
  expect(listUrl(file)).toBe(list);
});

test("of files that are given together the prelude is told by its name, and alone it is a file like any other", () => {
  const [timeline, prelude] = [new File([], "timeline.h5"), new File([], "prelude (1).h5")];
  expect(chosen([prelude, timeline])).toEqual({ file: timeline, prelude });
  expect(chosen([timeline])).toEqual({ file: timeline, prelude: undefined });
  expect(chosen([prelude])).toEqual({ file: prelude, prelude: undefined });
});
