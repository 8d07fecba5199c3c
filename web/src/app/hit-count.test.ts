import { expect, test } from "vitest";
import { hitCount } from "./hit-count";

const counted = { events: 1200, matchingNames: 7 };

test("a search tells how many events match, and at which of them a walk is", () => {
  expect(hitCount(counted, undefined)).toBe("1 200");
  expect(hitCount(counted, { rank: 3 })).toBe("3 of 1 200");
});

test("events that were too many to count have no places, and their names are told", () => {
  const many = { events: undefined, matchingNames: 2000 };
  expect(hitCount(many, undefined)).toBe("2 000 names");
  expect(hitCount(many, { rank: undefined })).toBe("2 000 names");
  expect(hitCount({ ...many, matchingNames: 1 }, undefined)).toBe("1 name");
});
