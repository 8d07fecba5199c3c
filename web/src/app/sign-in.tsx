/** The form that asks who you are. The token is sent once, in the body of a request, and kept nowhere in this page. */

import { useState } from "preact/hooks";
import { useFocus } from "../controls/focus";
import type { Gateway } from "../gateway/client";
import { Problem } from "../gateway/problem";

export function View({ gateway, why }: { gateway: Gateway; why?: string | undefined }) {
  const [problem, setProblem] = useState<string>();
  const [busy, setBusy] = useState(false);
  const field = useFocus<HTMLInputElement>();
  const onSubmit = async (event: SubmitEvent) => {
    event.preventDefault();
    const form = event.currentTarget as HTMLFormElement;
    const token = String(new FormData(form).get("token") ?? "").trim();
    setBusy(true);
    try {
      await gateway.signIn(token);
    } catch (error) {
      form.reset();
      setProblem(refusal(error));
    } finally {
      setBusy(false);
    }
  };
  return (
    <section class="opening">
      <h1>Sign in</h1>
      {why !== undefined && <p class="note">{why}</p>}
      <form class="sign-in" onSubmit={(event) => void onSubmit(event)}>
        <label>
          Token of the cluster
          <input ref={field} name="token" type="password" required autocomplete="off" spellcheck={false} aria-describedby="sign-in-words" />
        </label>
        <button type="submit" disabled={busy}>
          Sign in
        </button>
      </form>
      {problem !== undefined && (
        <p class="note" role="alert">
          Not signed in: {problem}
        </p>
      )}
      <p id="sign-in-words">
        <code>kubectl create token NAME --namespace NAMESPACE --duration 1h</code> makes one for a service account. You then may what it may, for an hour at most.
      </p>
      <p class="faint">It is shown to this gateway once. Your browser keeps a sealed cookie that no script can read and nobody else can use.</p>
    </section>
  );
}

function refusal(error: unknown): string {
  if (error instanceof Problem && error.status === 401) {
    return "the cluster does not know this token. It may have expired, or be for another audience or cluster.";
  }
  return error instanceof Error ? error.message : String(error);
}
