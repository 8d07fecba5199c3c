import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";

const dashboards = new URL("../../charts/flopwatch/files/dashboards/", import.meta.url).pathname;
const web = new URL("..", import.meta.url).pathname;
const folder = mkdtempSync(join(web, "node_modules/.dashboards-"));
afterAll(() => rmSync(folder, { recursive: true }));

/** What the compiler says of a dashboard that is written as an object of Grafana's type. */
function problems(name: string, dashboard: unknown): string {
  const file = join(folder, `${name}.ts`);
  const type = `import type { Checked } from "../../tests/grafana";`;
  writeFileSync(file, `${type}\nexport const dashboard: Checked = ${JSON.stringify(dashboard, null, 1)};\n`);
  const flags = ["--noEmit", "--strict", "--skipLibCheck", "--module", "esnext", "--moduleResolution", "bundler", "--target", "es2022", "--types", "node", "--ignoreConfig"];
  const { status, stdout, stderr } = spawnSync(process.execPath, [join(web, "node_modules/typescript/bin/tsc"), ...flags, file], { encoding: "utf8", cwd: web });
  return status === 0 ? "" : stdout + stderr;
}

const boards = readdirSync(dashboards).map((file) => [file, JSON.parse(readFileSync(join(dashboards, file), "utf8"))] as const);

test("every dashboard is of Grafana's published schema", { timeout: 120_000 }, () => {
  expect(boards.length).toBe(4);
  for (const [file, board] of boards) {
    expect(problems(file.replace(".json", ""), board)).toBe("");
  }
});

test("what Grafana does not know is found", { timeout: 120_000 }, () => {
  const board = boards[0]![1];
  expect(problems("field", { ...board, titel: "x" })).toContain("titel");
  const panel = board.panels.find(({ type }: { type: string }) => type === "timeseries");
  expect(problems("option", { ...board, panels: [{ ...panel, options: { legend: { placement: "nowhere" } } }] })).toContain("nowhere");
});
