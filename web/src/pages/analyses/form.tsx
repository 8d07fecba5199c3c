/** What an analysis is asked with: a field for each parameter, made of its schema, and for each further capture. */

import type { Workspace } from "../../workspace/workspace";
import { Others } from "./others";
import { type Analysis, type Asked, othersOf, type Parameter } from "./request";

interface Props {
  readonly analysis: Analysis;
  readonly workspace: Workspace;
  /** What is asked with at first. */
  readonly values: Readonly<Record<string, string>>;
  /** The further captures that are asked for now. */
  readonly others: readonly string[];
  /** Told of captures that are asked for at once. */
  readonly onOthers: (others: readonly string[]) => void;
  readonly onAsk: (asked: Asked) => void;
}

export function Form({ analysis, workspace, values: given, others, onOthers, onAsk }: Props) {
  const parameters = Object.entries(analysis.parameters);
  if (parameters.length === 0 && analysis.inputs === "one") {
    return null;
  }
  const ask = (event: SubmitEvent) => {
    event.preventDefault();
    const filled = new FormData(event.currentTarget as HTMLFormElement);
    const value = (name: string) => String(filled.get(name) ?? "").trim();
    const values = parameters.map(([name, parameter]) => {
      const field = `parameter ${name}`;
      return [name, kindOf(parameter) === "boolean" ? String(filled.has(field)) : value(field)] as const;
    });
    const named = filled.getAll("others").flatMap((text) => othersOf(String(text)));
    onAsk({ values: Object.fromEntries(values), others: named });
  };
  return (
    <form class="parameters" onSubmit={ask}>
      {analysis.inputs !== "one" && <Others analysis={analysis} workspace={workspace} chosen={others} onChoose={onOthers} />}
      {parameters.map(([name, parameter]) => (
        <label key={name} title={parameter.description ?? name}>
          {name.replaceAll("_", " ")} <Field name={`parameter ${name}`} parameter={parameter} value={given[name]} />
        </label>
      ))}
      <button type="submit">Run</button>
    </form>
  );
}

function kindOf({ type }: Parameter): string | undefined {
  return typeof type === "string" ? type : type?.find((kind) => kind !== "null");
}

function Field({ name, parameter, value }: { name: string; parameter: Parameter; value: string | undefined }) {
  const { minimum, maximum, maxLength } = parameter;
  const usual = String(parameter.default ?? "");
  const words = parameter.enum ?? parameter.oneOf?.flatMap((choice) => (choice.const === undefined ? [] : [choice.const]));
  if (words) {
    return (
      <select name={name}>
        {usual === "" && <option value="">as usual</option>}
        {words.map((word) => (
          <option key={word} value={word} selected={word === (value ?? usual)}>
            {word.replaceAll("_", " ")}
          </option>
        ))}
      </select>
    );
  }
  const kind = kindOf(parameter);
  if (kind === "boolean") {
    return <input name={name} type="checkbox" defaultChecked={value === undefined ? parameter.default === true : value === "true"} />;
  }
  if (kind === "integer" || kind === "number") {
    return <input name={name} type="number" step={kind === "number" ? "any" : 1} min={minimum ?? ""} max={maximum ?? ""} placeholder={usual} defaultValue={value ?? ""} />;
  }
  return <input name={name} maxLength={maxLength ?? -1} placeholder={usual} defaultValue={value ?? ""} />;
}
