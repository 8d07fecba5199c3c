import { expect, test } from "vitest";
import { csvOfRows } from "./csv";

test.each(["=1", "+1", "-1", "@A1", "\t=1", "\0=1"])("n12: the text %j is no formula in CSV, also where it reads as a number", (text) => {
  expect(csvOfRows(["name"], [{ name: text }, { name: -1 }, { name: null }, { name: "a=b" }])).toBe(`name\r\n'${text}\r\n-1\r\n\r\na=b\r\n`);
  expect(csvOfRows(["0"], [], [text])).toBe(`'${text}\r\n`);
});

test("n12: a text that begins with a carriage return is quoted and no formula", () => {
  expect(csvOfRows(["name"], [{ name: "\r=1" }])).toBe("name\r\n\"'\r=1\"\r\n");
});
