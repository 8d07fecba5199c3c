/** A button that leads to an analysis. */

import type { ComponentChildren } from "preact";
import type { Workspace } from "../../workspace/workspace";

export function Leading({ workspace, analysis, children }: { workspace: Workspace; analysis: string; children: ComponentChildren }) {
  return (
    <button type="button" class="link" title={`Show the analysis ${analysis}`} onClick={() => workspace.chooseAnalysis(analysis)}>
      {children}
    </button>
  );
}
