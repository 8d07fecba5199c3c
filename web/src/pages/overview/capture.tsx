/** What the capture is. */

import { Fact } from "../../controls/fact";
import type { Summary } from "../../summary/summary";
import type { Header } from "../../timeline/header";
import * as format from "../../view/format";
import type { Workspace } from "../../workspace/workspace";
import { beganOf, gpusOf, lengthOf, programsOf } from "./facts";

interface Props {
  readonly workspace: Workspace;
  readonly header: Header;
  readonly summary: Summary;
}

export function Capture({ workspace, header, summary }: Props) {
  const { status, tree } = workspace;
  const options = header.source.details["capture_options"];
  const programs = programsOf(tree);
  const devices = header.devices.map(({ name }) => name);
  const gpus = gpusOf(devices.length > 0 ? devices : summary.gpus.map(({ name }) => name));
  return (
    <section class="whole">
      <h2>Capture</h2>
      <dl class="fields">
        {status.kind === "open" && <Fact name="file" value={workspace.fileName} />}
        {header.sessionId !== workspace.fileName && <Fact name="session" value={header.sessionId || "without an id"} />}
        {programs !== undefined && <Fact name="program" value={programs} />}
        {gpus !== undefined && <Fact name={header.rows.some(({ track }) => track === "device") ? "devices" : "GPUs"} value={gpus} />}
        <Fact name="length" value={lengthOf(header, summary.events_span_ns)} />
        <Fact name="events" value={format.grouped(header.totalEvents)} />
        <Fact name="recorded by" value={`${header.source.profiler} ${header.source.version}`} />
        {Array.isArray(options) && options.length > 0 && <Fact name="asked for" value={options.join(", ")} />}
        {header.startUtcNs !== undefined && <Fact name="began" value={beganOf(header.startUtcNs)} />}
        <Fact name="size" value={format.bytes(header.fileBytes)} />
      </dl>
    </section>
  );
}
