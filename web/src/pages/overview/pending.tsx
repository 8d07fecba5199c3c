/** What stands in the place of a result that is not there. */

import type { Result } from "./result";

export function Pending({ result }: { result: Exclude<Result<unknown>, { readonly state: "made" }> }) {
  switch (result.state) {
    case "making":
      return (
        <p class="faint" aria-busy="true">
          Analyzing…
        </p>
      );
    case "failed":
      return <p class="note">{result.why}</p>;
    case "nowhere":
      return (
        <p class="faint">
          No agent and no gateway serves this file, so nothing is analyzed here: open it with <code>flopwatch serve</code>, or run <code>flopwatch diagnose</code> on it.
        </p>
      );
  }
}
