/** What the user set for all captures; it is kept in the browser's storage. */

import { shortName } from "../view/names";
import { Observable } from "./store";

/** Names of the settings in the storage. */
const KEYS = { fullNames: "flopwatch-full-names", dragSelects: "flopwatch-drag-selects" } as const;

const PANEL_KEY = "flopwatch-panel-share";

type Setting = keyof typeof KEYS;

export class Settings extends Observable {
  /** Whether names of functions have their return types, namespaces and arguments. */
  readonly fullNames: boolean;
  /** Whether a drag on the timeline selects an area; otherwise it moves the view. */
  readonly dragSelects: boolean;

  /** The share of the timeline's height that the details take, in percent; undefined where they take what they need. */
  readonly panelShare: number | undefined;

  /** Without a storage, settings last as long as the page. */
  constructor(private readonly storage: Pick<Storage, "getItem" | "setItem"> | undefined) {
    super();
    this.fullNames = this.kept("fullNames");
    this.dragSelects = this.kept("dragSelects");
    const share = Number.parseInt(storage?.getItem(PANEL_KEY) ?? "", 10);
    this.panelShare = share >= 0 && share <= 100 ? share : undefined;
  }

  set(setting: Setting, value: boolean): void {
    this.take({ [setting]: value }, KEYS[setting], value ? "yes" : "no");
  }

  /** Sets the share of the details. */
  size(panelShare: number | undefined): void {
    this.take({ panelShare }, PANEL_KEY, panelShare === undefined ? "" : String(panelShare));
  }

  private take(change: Partial<Settings>, key: string, value: string): void {
    Object.assign(this, change);
    try {
      this.storage?.setItem(key, value);
    } catch {
      // A full storage keeps nothing.
    }
    this.changed();
  }

  private kept(setting: Setting): boolean {
    return this.storage?.getItem(KEYS[setting]) === "yes";
  }

  /** A name as it is to be shown. */
  named(name: string): string {
    return this.fullNames ? name : shortName(name);
  }
}

export const settings = new Settings(browserStorage());

function browserStorage(): Storage | undefined {
  try {
    return localStorage;
  } catch {
    // A frame may be kept from storage.
    return undefined;
  }
}
