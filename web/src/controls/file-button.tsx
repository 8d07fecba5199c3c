/** A button that has the user choose files of this machine. */

import type { ComponentChildren } from "preact";
import { useRef } from "preact/hooks";

interface Props {
  /** Endings of the files that are offered. */
  readonly accept: string;
  /** What the field behind the button is called. */
  readonly label: string;
  /** Told of one file or, with `multiple`, of as many as were chosen. */
  readonly onFiles: (files: readonly File[]) => void;
  readonly multiple?: boolean;
  readonly children: ComponentChildren;
}

export function FileButton({ accept, label, onFiles, multiple = false, children }: Props) {
  const input = useRef<HTMLInputElement>(null);
  return (
    <>
      <button type="button" onClick={() => input.current?.click()}>
        {children}
      </button>
      <input
        ref={input}
        type="file"
        hidden
        accept={accept}
        multiple={multiple}
        aria-label={label}
        onChange={(event) => {
          const files = [...(event.currentTarget.files ?? [])];
          event.currentTarget.value = "";
          if (files.length > 0) {
            onFiles(files);
          }
        }}
      />
    </>
  );
}
