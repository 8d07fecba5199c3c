/** Light or dark: as the system has it, until the user chooses. */

import { useEffect, useState } from "preact/hooks";

const KEY = "flopwatch-theme";

function initial(): boolean {
  const chosen = stored();
  return chosen === null ? matchMedia("(prefers-color-scheme: dark)").matches : chosen === "dark";
}

function stored(): string | null {
  try {
    return localStorage.getItem(KEY);
  } catch {
    // A frame may be kept from storage; the choice then lasts as long as the page.
    return null;
  }
}

export function useDark(): [boolean, (dark: boolean) => void] {
  const [dark, set] = useState(() => apply(initial()));
  useEffect(() => {
    dispatchEvent(new CustomEvent("flopwatch-theme", { detail: dark }));
  }, [dark]);
  return [
    dark,
    (dark) => {
      set(apply(dark));
      try {
        localStorage.setItem(KEY, dark ? "dark" : "light");
      } catch {
        // As above.
      }
    },
  ];
}

/** Sets the colours of the page, before anything is rendered with them. */
function apply(dark: boolean): boolean {
  document.documentElement.dataset["theme"] = dark ? "dark" : "light";
  return dark;
}

/** Whether it is dark now, for what draws by itself. */
export function isDark(): boolean {
  return document.documentElement.dataset["theme"] === "dark";
}
