/** That a file was cut, on every page: its figures are of a part. */

import { cutOf } from "../timeline/cut";
import type { Drop } from "../timeline/header";

export function View({ drops }: { drops: readonly Drop[] }) {
  const cut = cutOf(drops);
  return cut.length === 0 ? null : (
    <div class="cut" role="alert">
      <strong>This file ends before its end.</strong> Every figure is of the part that is there, and what looks like idle time may be what is missing: {cut.map(({ what }) => what).join("; ")}. Take the
      whole file, or capture again.
    </div>
  );
}
