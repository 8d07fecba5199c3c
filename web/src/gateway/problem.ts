/** What a server says where it did not do what it was asked. */

/** Why the gateway did not do what it was asked; the message is its own. */
export class Problem extends Error {
  override name = "Problem";

  constructor(
    readonly status: number,
    /** Of the gateway's closed set; empty where something else answered. */
    readonly reason: string,
    detail: string,
  ) {
    super(detail);
  }
}

/** What an answer other than success says; a proxy on the way may have written it instead of the gateway. */
export async function problemOf(response: Response): Promise<Problem> {
  const told = (await response.json().catch(() => null)) as { reason?: unknown; detail?: unknown } | null;
  const reason = typeof told?.reason === "string" ? told.reason : "";
  const detail = typeof told?.detail === "string" && told.detail !== "" ? told.detail : `The server answers ${response.status} ${response.statusText}`.trimEnd();
  return new Problem(response.status, reason, detail);
}
