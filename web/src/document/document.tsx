/** A result as people read it: what was not captured first, then figures, tables and charts in their order. */

import type { PageBlock, PageDocument, PageTile } from "../generated/catalogue";
import * as format from "../view/format";
import { Bars, Lines } from "./charts";
import { figure, printable, shown } from "./figure";
import { FlameGraph } from "./flame-graph";
import { Roofline } from "./roofline";
import { type Guide, Table } from "./table";

interface Props {
  readonly document: PageDocument;
  readonly guide: Guide;
  /** What the captures are called, in the place of their sessions. */
  readonly names?: readonly string[] | undefined;
}

export function Document({ document, guide, names }: Props) {
  const { page, inputs } = document;
  const given = document.parameters.filter(({ value }) => value !== "null");
  return (
    <>
      {inputs.length > 1 && (
        <ol class="inputs" aria-label="Captures">
          {inputs.map((input, at) => (
            <li key={at}>
              {printable(names?.[at] ?? input.session)} <span class="faint">{[input.tool, input.gpus.join(", "), ...(input.window_ns + input.events > 0 ? [figure(input.window_ns, "ns"), `${format.grouped(input.events)} events`] : [])].filter((part) => part !== "").join(" · ")}</span>
            </li>
          ))}
        </ol>
      )}
      {page.not_captured.length > 0 && (
        <aside class="missing" aria-label="Not captured">
          <h3>Not captured</h3>
          <ul>
            {page.not_captured.map(({ what, reason }, at) => (
              <li key={at}>
                <strong>{printable(what)}</strong>: {printable(reason)}
              </li>
            ))}
          </ul>
        </aside>
      )}
      {page.blocks.map((block, at) => (
        <Block key={at} name={document.analysis} block={block} guide={guide} />
      ))}
      <p class="faint made">
        {document.analysis} version {document.version}
        {given.length > 0 && `, with ${given.map(({ name, value }) => `${name} = ${value === "" ? '""' : printable(value)}`).join(", ")}`}
      </p>
    </>
  );
}

function Block({ name, block, guide }: { name: string; block: PageBlock; guide: Guide }) {
  switch (block.kind) {
    case "text":
      return (
        <section class="block">
          {block.title !== "" && <h3>{block.title}</h3>}
          <p class="text">{block.text.split("\n").map(printable).join("\n")}</p>
        </section>
      );
    case "tiles":
      return (
        <dl class="tiles">
          {block.tiles.map((tile, at) => (
            <Tile key={at} tile={tile} />
          ))}
        </dl>
      );
    case "table":
      return <Table name={name} table={block} guide={guide} />;
    case "bars":
      return <Bars bars={block} />;
    case "lines":
      return <Lines lines={block} />;
    case "flame":
      return <FlameGraph graph={block} guide={guide} />;
    case "roofline":
      return <Roofline chart={block} />;
  }
}

function Tile({ tile: { label, value, unit, about } }: { tile: PageTile }) {
  return (
    <div>
      <dt>{label}</dt>
      <dd title={value === null ? "" : printable(String(value))}>{value === null ? "not known" : shown(value, unit)}</dd>
      {about !== "" && <dd class="faint">{about}</dd>}
    </div>
  );
}
