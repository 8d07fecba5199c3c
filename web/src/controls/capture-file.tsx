/** A button that has the user choose a file of this machine, which the program that serves this page then converts and holds. */

import { useEffect, useRef, useState } from "preact/hooks";
import * as format from "../view/format";
import type { Captures, HeldCapture } from "../workspace/captures";
import { CAPTURE_ENDINGS } from "./capture-endings";
import { FileButton } from "./file-button";

interface Props {
  readonly captures: Captures;
  /** Told of the capture that was made of the file. */
  readonly onAdd: (capture: HeldCapture) => void;
}

export function CaptureFile({ captures, onAdd }: Props) {
  const [told, setTold] = useState("");
  const [failure, setFailure] = useState<string>();
  const ended = useRef<AbortController | undefined>(undefined);
  useEffect(() => () => ended.current?.abort(new Error("It was closed.")), []);
  const add = async (file: File) => {
    const controller = new AbortController();
    ended.current?.abort(new Error("Another file was chosen."));
    ended.current = controller;
    const tell = (sent: number) => setTold(sent < file.size ? `${format.progress(sent / Math.max(1, file.size))} of ${file.name} sent` : `Converting ${file.name}…`);
    setFailure(undefined);
    tell(0);
    try {
      onAdd(await captures.add(file, tell, controller.signal));
    } catch (error) {
      if (!controller.signal.aborted) {
        setFailure(`${file.name} cannot be compared: ${error instanceof Error ? error.message : String(error)}`);
      }
    } finally {
      if (ended.current === controller) {
        setTold("");
      }
    }
  };
  return (
    <>
      <FileButton accept={CAPTURE_ENDINGS} label="Choose a file to compare with" onFiles={([file]) => file && void add(file)}>
        Choose a file…
      </FileButton>
      <span class="faint" role="status">
        {told}
      </span>
      {failure !== undefined && (
        <span class="failure" role="alert">
          {failure}
        </span>
      )}
    </>
  );
}
