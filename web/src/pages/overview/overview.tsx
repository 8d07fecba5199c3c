/** The capture at a glance: what it is, how long a step takes, where the time goes, what is worth mending; then its tables, and what it does not hold. */

import { useEffect, useState } from "preact/hooks";
import type { Advice, GpuTimes, IterationsResult } from "../../generated/catalogue";
import type { Summary } from "../../summary/summary";
import type { Workspace } from "../../workspace/workspace";
import { Absent } from "./absent";
import { Capture } from "./capture";
import { Findings } from "./findings";
import { GpuTime } from "./gpu-time";
import { Gpus } from "./gpus";
import { Lengths } from "./lengths";
import { Metrics } from "./metrics";
import { useResult } from "./result";
import { Steps } from "./steps";
import { Tables } from "./tables";

/** Steps that are asked for, the first ones: more bars are not told apart. */
const MOST_STEPS = 200;

/** Categories whose lengths are charted. */
const CHARTED = new Set(["cuda_kernel", "cuda_graph", "device_op"]);

export function View({ workspace }: { workspace: Workspace }) {
  const [summary, setSummary] = useState<Summary>();
  const [failure, setFailure] = useState<string>();
  useEffect(() => {
    const failed = (error: unknown) => setFailure(error instanceof Error ? error.message : String(error));
    void workspace
      .summary()
      .then(setSummary, failed)
      .then(() => workspace.addPrelude());
  }, [workspace]);
  const advice = useResult<Advice>(workspace.url, "advice");
  const times = useResult<GpuTimes>(workspace.url, "gpu-time");
  const steps = useResult<IterationsResult>(workspace.url, "iterations", MOST_STEPS);
  const { header } = workspace;
  if (failure !== undefined) {
    return (
      <p class="failure" role="alert">
        {failure}
      </p>
    );
  }
  if (!summary || !header) {
    return <p class="waiting">Reading the summary…</p>;
  }
  // Of TPUs and the like, nothing about GPUs is missing.
  const isOfOtherDevices = summary.gpus.length === 0 && header.categories.some(({ name, count }) => name === "device_op" && count > 0);
  return (
    <div class="overview">
      <Capture workspace={workspace} header={header} summary={summary} />
      <Steps workspace={workspace} result={steps} />
      {!isOfOtherDevices && <GpuTime workspace={workspace} result={times} />}
      <Findings workspace={workspace} result={advice} />
      {!isOfOtherDevices && <Gpus workspace={workspace} header={header} summary={summary} />}
      {header.categories.map((category, at) =>
        category.count > 0 && CHARTED.has(category.name) ? <Lengths key={category.name} workspace={workspace} category={at} /> : null,
      )}
      {header.counters.length > 0 && <Metrics workspace={workspace} counters={header.counters} />}
      <Tables workspace={workspace} summary={summary} />
      <Absent workspace={workspace} summary={summary} advice={advice.state === "made" ? advice.value : undefined} />
    </div>
  );
}
