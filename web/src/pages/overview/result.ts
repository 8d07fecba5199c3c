/** The result of an analysis, as the agent or gateway that serves the capture makes it. */

import { useEffect, useState } from "preact/hooks";
import { made } from "../../gateway/made";
import { NOTHING, resultUrl } from "../analyses/request";

/** How far a result is; it is nowhere where no program serves the file. */
export type Result<T> = { readonly state: "nowhere" } | { readonly state: "making" } | { readonly state: "made"; readonly value: T } | { readonly state: "failed"; readonly why: string };

/** The result of the analysis `name` of the capture at `file`, with a parameter as `limit` where one is given. */
export function useResult<T>(file: string | undefined, name: string, limit?: number): Result<T> {
  const [result, setResult] = useState<Result<T>>({ state: "making" });
  useEffect(() => {
    const asked = limit === undefined ? NOTHING : { ...NOTHING, values: { limit: String(limit) } };
    const url = file === undefined ? undefined : resultUrl(file, name, asked);
    if (url === undefined) {
      setResult({ state: "nowhere" });
      return;
    }
    setResult({ state: "making" });
    const ended = new AbortController();
    const run = async () => setResult({ state: "made", value: (await (await made(url, ended.signal)).json()) as T });
    run().catch((error: unknown) => ended.signal.aborted || setResult({ state: "failed", why: error instanceof Error ? error.message : String(error) }));
    return () => ended.abort();
  }, [file, name, limit]);
  return result;
}
