/** How long the events of a category take. */

import { useEffect, useState } from "preact/hooks";
import { isDark } from "../../app/dark";
import type { Distribution } from "../../engine/protocol";
import * as format from "../../view/format";
import { categoryCss } from "../../view/palette";
import type { Workspace } from "../../workspace/workspace";

/** What the categories' events are called. */
const WORDS: Readonly<Record<string, string>> = { cuda_kernel: "kernels", cuda_graph: "whole CUDA graphs", device_op: "device operations" };

export function Lengths({ workspace, category }: { workspace: Workspace; category: number }) {
  const [found, setFound] = useState<Distribution>();
  useEffect(() => {
    workspace.engine.call("distribution", category).then(setFound, (error: unknown) => workspace.report(error));
  }, [workspace, category]);
  const name = workspace.header?.categories[category]?.name ?? "";
  if (!found || found.counts.length === 0) {
    return null;
  }
  const most = Math.max(...found.counts);
  const text = found.counts.map((count, at) => `${format.grouped(count)} from ${format.duration(found.from[at] ?? 0)}`).join(", ");
  return (
    <section>
      <h2>Lengths of {WORDS[name] ?? name.replaceAll("_", " ")}</h2>
      <svg class="lengths" viewBox={`0 0 ${found.counts.length} 100`} preserveAspectRatio="none" role="img" aria-label={text}>
        {found.counts.map((count, at) => (
          <rect key={at} x={at + 0.05} width="0.9" y={100 - (100 * count) / most} height={(100 * count) / most} fill={categoryCss(name, isDark())}>
            <title>
              {format.grouped(count)} from {format.duration(found.from[at] ?? 0)} on
            </title>
          </rect>
        ))}
      </svg>
      <p class="ends">
        <span>{format.duration(found.from[0] ?? 0)}</span>
        <span>{format.duration(found.from.at(-1) ?? 0)}</span>
      </p>
    </section>
  );
}
