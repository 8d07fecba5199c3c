/** The switch between short names of functions and full ones. */

import { settings } from "../workspace/settings";
import { useObservable } from "../workspace/store";

export function FullNames() {
  const { fullNames } = useObservable(settings);
  return (
    <label title="Show names of functions with return type, namespaces and arguments">
      <input type="checkbox" checked={fullNames} onChange={(event) => settings.set("fullNames", event.currentTarget.checked)} /> full names
    </label>
  );
}
