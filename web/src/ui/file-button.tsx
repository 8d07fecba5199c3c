/** A button that has the user choose a file of this machine. */

import type { ComponentChildren } from "preact";
import { useRef } from "preact/hooks";

interface Props {
  /** Endings of the files that are offered. */
  readonly accept: string;
  /** What the field behind the button is called. */
  readonly label: string;
  readonly onFile: (file: File) => void;
  readonly children: ComponentChildren;
}

export function FileButton({ accept, label, onFile, children }: Props) {
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
        aria-label={label}
        onChange={(event) => {
          const file = event.currentTarget.files?.[0];
          event.currentTarget.value = "";
          if (file) {
            onFile(file);
          }
        }}
      />
    </>
  );
}
