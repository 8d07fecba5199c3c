/** What an analysis is asked with: a field for each parameter, made of its schema, and for each further capture. */

import { useEffect, useState } from "preact/hooks";
import type { Gateway } from "../../gateway/client";
import { type Analysis, type Asked, othersOf, type Parameter } from "./request";

interface Props {
  readonly analysis: Analysis;
  readonly gateway: Gateway | undefined;
  readonly onAsk: (asked: Asked) => void;
}

export function Form({ analysis, gateway, onAsk }: Props) {
  const parameters = Object.entries(analysis.parameters);
  if (parameters.length === 0 && analysis.inputs === "one") {
    return null;
  }
  const ask = (event: SubmitEvent) => {
    event.preventDefault();
    const given = new FormData(event.currentTarget as HTMLFormElement);
    const value = (name: string) => String(given.get(name) ?? "").trim();
    const values = parameters.map(([name, parameter]) => {
      const field = `parameter ${name}`;
      return [name, kindOf(parameter) === "boolean" ? String(given.has(field)) : value(field)] as const;
    });
    onAsk({ values: Object.fromEntries(values), others: othersOf(value("others")) });
  };
  return (
    <form class="parameters" onSubmit={ask}>
      {analysis.inputs !== "one" && <Others analysis={analysis} gateway={gateway} />}
      {parameters.map(([name, parameter]) => (
        <label key={name} title={parameter.description ?? name}>
          {name.replaceAll("_", " ")} <Field name={`parameter ${name}`} parameter={parameter} />
        </label>
      ))}
      <button type="submit">Run</button>
    </form>
  );
}

function Others({ analysis: { inputs }, gateway }: { analysis: Analysis; gateway: Gateway | undefined }) {
  const [known, setKnown] = useState<readonly string[]>([]);
  useEffect(() => {
    const found = gateway?.sessions({ namespace: "", status: "", mode: "" });
    found?.then(({ sessions }) => setKnown(sessions.map(({ session_id }) => session_id))).catch(() => setKnown([]));
  }, [gateway]);
  const [what, more] = inputs === "two" ? ["with", ""] : ["with further captures", ", several apart by spaces"];
  return (
    <label title={`Further captures: each a session's id, with /CAPTURE where the session has several${more}`}>
      {what} <input name="others" list="known-sessions" size={inputs === "two" ? 22 : 36} placeholder="session, or session/capture" required={inputs === "two"} />
      <datalist id="known-sessions">
        {known.map((id) => (
          <option key={id} value={id} />
        ))}
      </datalist>
    </label>
  );
}

function kindOf({ type }: Parameter): string | undefined {
  return typeof type === "string" ? type : type?.find((kind) => kind !== "null");
}

function Field({ name, parameter }: { name: string; parameter: Parameter }) {
  const { minimum, maximum, maxLength } = parameter;
  const usual = String(parameter.default ?? "");
  const words = parameter.enum ?? parameter.oneOf?.flatMap((choice) => (choice.const === undefined ? [] : [choice.const]));
  if (words) {
    return (
      <select name={name}>
        {usual === "" && <option value="">as usual</option>}
        {words.map((word) => (
          <option key={word} value={word} selected={word === usual}>
            {word.replaceAll("_", " ")}
          </option>
        ))}
      </select>
    );
  }
  const kind = kindOf(parameter);
  if (kind === "boolean") {
    return <input name={name} type="checkbox" defaultChecked={parameter.default === true} />;
  }
  if (kind === "integer" || kind === "number") {
    return <input name={name} type="number" step={kind === "number" ? "any" : 1} min={minimum ?? ""} max={maximum ?? ""} placeholder={usual} />;
  }
  return <input name={name} maxLength={maxLength ?? -1} placeholder={usual} />;
}
