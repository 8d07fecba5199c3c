/** The form that starts a session: which pod, with what, for how long. */

import { useEffect, useState } from "preact/hooks";
import { useFocus } from "../../controls/focus";
import type { Gateway } from "../../gateway/client";
import type { Mode, Run, Target, Template } from "../../gateway/messages";

const NAMESPACE_KEY = "flopwatch-namespace";
/** What may be asked of a capture to hold. */
const REQUIRED = ["cuda_kernel", "cuda_api", "nvtx_range", "os_runtime"];
const OUTPUTS = ["Timeline", "Summary", "Raw"];
/** Typing has paused for so long, in ms, before pods are asked for. */
const PAUSE = 300;

interface Props {
  readonly gateway: Gateway;
  /** Namespaces that are known. */
  readonly namespaces: readonly string[];
  readonly onStarted: (id: string) => void;
  readonly onClose: () => void;
}

export function Start({ gateway, namespaces, onStarted, onClose }: Props) {
  const [modes, setModes] = useState<readonly Mode[]>([]);
  const [mode, setMode] = useState("auto");
  const [namespace, setNamespace] = useState(() => sessionStorage.getItem(NAMESPACE_KEY) ?? namespaces[0] ?? "");
  const [by, setBy] = useState<"name" | "labels" | "copy" | "template" | "default">("name");
  const [pod, setPod] = useState("");
  const [targets, setTargets] = useState<readonly Target[]>([]);
  const [words, setWords] = useState("");
  const [problem, setProblem] = useState<string>();
  const [busy, setBusy] = useState(false);
  const first = useFocus<HTMLInputElement>();
  useEffect(() => void gateway.modes().then(setModes, (error: unknown) => setProblem(message(error))), [gateway]);
  useEffect(() => {
    let over = false;
    setTargets([]);
    setWords("");
    const ask = async () => {
      try {
        const { targets, more } = await gateway.targets(namespace);
        if (!over) {
          setTargets(targets);
          setWords(targets.length === 0 ? "No pod runs there." : more ? "There are more pods than are listed." : "");
        }
      } catch (error) {
        if (!over) {
          setWords(`Pods cannot be listed (${message(error)}). Type the pod's name.`);
        }
      }
    };
    const timer = namespace === "" ? undefined : setTimeout(() => void ask(), PAUSE);
    return () => {
      over = true;
      clearTimeout(timer);
    };
  }, [gateway, namespace]);
  const byName = by === "name" || by === "copy";
  const target = byName ? targets.find((target) => target.pod === pod) : undefined;
  const onSubmit = async (event: SubmitEvent) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    setBusy(true);
    setProblem(undefined);
    try {
      sessionStorage.setItem(NAMESPACE_KEY, namespace);
      onStarted(await gateway.run(runOf(form)));
    } catch (error) {
      setProblem(message(error));
      setBusy(false);
    }
  };
  return (
    <form class="start" aria-label="New session" onSubmit={(event) => void onSubmit(event)}>
      <label>
        Namespace
        <input ref={first} name="namespace" required maxLength={63} pattern="[a-z0-9\-]+" list="start-namespaces" value={namespace} onInput={(event) => setNamespace(event.currentTarget.value)} />
      </label>
      <label>
        Pods
        <select name="by" value={by} onChange={(event) => setBy(event.currentTarget.value as typeof by)}>
          <option value="name">one, by name</option>
          <option value="labels">by labels</option>
          <option value="copy">a copy of one, by name</option>
          <option value="template">a new one, of a manifest</option>
          <option value="default">the namespace's default</option>
        </select>
      </label>
      {by === "template" && (
        <>
          <label>
            Manifest of a Pod (JSON)
            <textarea name="template" required rows={6} maxLength={60_000} spellcheck={false} placeholder={'{"spec": {"containers": [{"name": "main", "image": "bench"}]}}'} />
          </label>
          <label>
            Window opens
            <select name="start">
              <option value="ContainerStart">before its first instruction</option>
              <option value="Now">once it runs</option>
            </select>
          </label>
        </>
      )}
      {by === "labels" && (
        <>
          <label>
            Labels
            <input name="labels" required maxLength={1024} placeholder="app=train,role=worker" autocomplete="off" spellcheck={false} />
          </label>
          <label>
            At most
            <input name="most" type="number" min={1} max={50} placeholder="as usual" />
          </label>
        </>
      )}
      <label hidden={!byName}>
        Pod
        <input disabled={!byName} name="pod" required maxLength={253} list="start-pods" value={pod} autocomplete="off" onInput={(event) => setPod(event.currentTarget.value)} />
      </label>
      <datalist id="start-namespaces">
        {namespaces.map((name) => (
          <option key={name} value={name} />
        ))}
      </datalist>
      <datalist id="start-pods">
        {targets.map((target) => (
          <option key={target.pod} value={target.pod}>
            {described(target)}
          </option>
        ))}
      </datalist>
      <label>
        Mode
        <select name="mode" value={mode} onChange={(event) => setMode(event.currentTarget.value)}>
          {modes.map(({ id }) => (
            <option key={id} value={id}>
              {id}
            </option>
          ))}
        </select>
      </label>
      <label>
        Seconds
        <input name="duration" type="number" required min={1} max={300} value={10} />
      </label>
      <details>
        <summary>Options</summary>
        <fieldset>
          <legend>Must hold events of</legend>
          {REQUIRED.map((category) => (
            <label key={category}>
              <input type="checkbox" name="require" value={category} /> {category}
            </label>
          ))}
        </fieldset>
        <fieldset>
          <legend>Publish</legend>
          {OUTPUTS.map((output) => (
            <label key={output}>
              <input type="checkbox" name="output" value={output} defaultChecked={output !== "Raw"} /> {output}
            </label>
          ))}
        </fieldset>
        <label>
          Wait for a turn, seconds
          <input name="deadline" type="number" min={1} max={86_400} placeholder="as usual" />
        </label>
        <label>
          Delete after, seconds
          <input name="ttl" type="number" min={0} max={31_536_000} placeholder="as usual" />
        </label>
      </details>
      {target && target.containers.length > 1 && (
        <fieldset>
          <legend>Containers (none: those that ask for a GPU)</legend>
          {target.containers.map(({ name, gpu, prepared }) => (
            <label key={name}>
              <input type="checkbox" name="container" value={name} /> {name}
              <span class="faint">{[gpu ? "GPU" : "", prepared ? "prepared" : ""].filter(Boolean).map((word) => ` ${word}`)}</span>
            </label>
          ))}
        </fieldset>
      )}
      <p class="words faint" aria-live="polite">
        {words !== "" ? words : modes.find(({ id }) => id === mode)?.description}
        {by === "copy" && " The copy runs beside the pod for the session alone, behind no Service, and is deleted afterwards."}
        {by === "name" && target && !target.containers.some(({ prepared }) => prepared) && " This pod was not prepared for Nsight Systems when it started, so metrics alone are open."}
      </p>
      {problem !== undefined && (
        <p class="words note" role="alert">
          {problem}
        </p>
      )}
      <p class="words">
        <button type="submit" disabled={busy}>
          Start
        </button>{" "}
        <button type="button" onClick={onClose}>
          Cancel
        </button>
      </p>
    </form>
  );
}

/** What the form asks for; what was left empty is left out. Throws where labels are none. */
export function runOf(form: FormData): Run {
  const text = (name: string) => String(form.get(name) ?? "").trim();
  const all = (name: string) => form.getAll(name).map(String);
  const [require, outputs] = [all("require"), all("output")];
  return {
    mode: text("mode"),
    target: {
      namespace: text("namespace"),
      containers: all("container"),
      ...podsOf(text),
    },
    options: {
      ...(text("by") === "template" && { start: text("start") }),
      duration_seconds: Number(text("duration")),
      ...(require.length > 0 && { require }),
      ...(outputs.length > 0 && { outputs }),
      ...(text("deadline") !== "" && { start_deadline_seconds: Number(text("deadline")) }),
      ...(text("ttl") !== "" && { ttl_seconds_after_finished: Number(text("ttl")) }),
    },
  };
}

/** Which pods; none where the namespace's default is meant. */
function podsOf(text: (name: string) => string): Partial<Run["target"]> {
  switch (text("by")) {
    case "labels":
      return { selector: labelsOf(text("labels")), ...(text("most") !== "" && { max_pods: Number(text("most")) }) };
    case "copy":
      return { replica_of: text("pod") };
    case "template":
      return { template: templateOf(text("template")) };
    case "default":
      return {};
    default:
      return { pod: text("pod") };
  }
}

/** Labels, annotations and specification of a manifest. */
function templateOf(text: string): Template {
  const wrong = new Error("The manifest is not a Pod's as JSON: it needs `spec`.");
  let manifest: { metadata?: Template["metadata"]; spec?: Template["spec"] };
  try {
    manifest = JSON.parse(text) as typeof manifest;
  } catch {
    throw wrong;
  }
  if (typeof manifest?.spec !== "object" || manifest.spec === null) {
    throw wrong;
  }
  const { labels, annotations } = manifest.metadata ?? {};
  return { metadata: { ...(labels && { labels }), ...(annotations && { annotations }) }, spec: manifest.spec };
}

function labelsOf(text: string): Record<string, string> {
  const labels = text.split(",").map((label) => /^\s*([^\s=]+)\s*=\s*([^\s=]*)\s*$/.exec(label));
  if (labels.some((label) => label === null)) {
    throw new Error("Labels are written as app=train,role=worker.");
  }
  return Object.fromEntries(labels.map((label) => [label?.[1] ?? "", label?.[2] ?? ""]));
}

function described({ node, containers }: Target): string {
  const facts = [containers.some(({ gpu }) => gpu) ? "GPU" : "no GPU", containers.some(({ prepared }) => prepared) ? "prepared" : "not prepared", node ?? ""];
  return facts.filter(Boolean).join(", ");
}

function message(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
