import { expect, test } from "vitest";
import { nameOfUrl, tabTitle } from "./title";

test.each([
  ["http://127.0.0.1:1/v1/namespaces/local/captures/a.json.gz/artifacts/timeline.h5", "a.json.gz"],
  ["https://gateway.example/api/profiling/timeline/0badcafe.h5?capture=c", "0badcafe"],
  ["https://files.example/runs/of%20today.h5?x=1", "of today.h5"],
])("the file at %s is called %s", (url, name) => {
  expect(nameOfUrl(url, "0badcafe")).toBe(name);
});

test.each([
  ["hta_control.json.gz", "Timeline", "hta_control – Timeline – Flopwatch"],
  ["run.1.pt.trace.json.gz", "Overview", "run.1 – Overview – Flopwatch"],
  ["capture.cuda-trace", "Overview", "capture – Overview – Flopwatch"],
  ["0badcafe", "Tables", "0badcafe – Tables – Flopwatch"],
  [".h5", "Tables", ".h5 – Tables – Flopwatch"],
  [undefined, "Sessions", "Sessions – Flopwatch"],
  [undefined, undefined, "Flopwatch"],
])("the tab of %s on the page %s is called %s", (file, page, title) => {
  expect(tabTitle(file, page)).toBe(title);
});
