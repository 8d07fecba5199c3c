/** A flame graph of a page, on a canvas. */

import { useEffect, useRef } from "preact/hooks";
import type { PageFlame } from "../generated/catalogue";
import { flame } from "./flame.js";
import type { Guide } from "./table";

export function FlameGraph({ graph, guide }: { graph: PageFlame; guide: Guide }) {
  const root = useRef<HTMLDivElement>(null);
  useEffect(() => (root.current ? flame(root.current, graph, guide.go) : undefined), [graph]);
  return (
    <section class="block">
      {graph.title !== "" && <h3>{graph.title}</h3>}
      <div class="flame-graph" ref={root} />
      {graph.left_out > 0 && <p class="faint">{graph.left_out} smaller frames are in the JSON.</p>}
    </section>
  );
}
