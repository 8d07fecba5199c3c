/** A result as files: what programs read, and the page that opens from a disk. */

import { useState } from "preact/hooks";
import { keep } from "../downloads/keep";

/** A format, what its button is called, and what the file is. */
export type FileFormat = readonly [format: string, label: string, name: string];

/** The formats of a result that has a page. */
export const pageFormats = (name: string, json: string): readonly FileFormat[] => [
  ["html", "HTML", `${name}.html`],
  ["json", "JSON", json],
  ["csv", "CSV", `${name}.csv`],
];

interface Props {
  readonly formats: readonly FileFormat[];
  readonly enabled: boolean;
  /** The result in a format. */
  readonly of: (format: string) => Promise<Blob>;
}

export function Downloads({ formats, enabled, of }: Props) {
  const [busy, setBusy] = useState<string>();
  const [failure, setFailure] = useState<string>();
  const download = async (format: string, name: string) => {
    setBusy(format);
    setFailure(undefined);
    try {
      keep(name, await of(format));
    } catch (error) {
      setFailure(error instanceof Error ? error.message : String(error));
    } finally {
      setBusy(undefined);
    }
  };
  return (
    <span class="downloads" role="group" aria-label="Download">
      {formats.map(([format, label, name]) => (
        <button key={format} type="button" disabled={!enabled || busy !== undefined} aria-busy={busy === format} title={`Keep ${name}`} onClick={() => void download(format, name)}>
          {label}
        </button>
      ))}
      {failure !== undefined && <span role="alert">{failure}</span>}
    </span>
  );
}
