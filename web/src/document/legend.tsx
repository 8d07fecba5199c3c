/** The names of a chart's series, each with its colour. */

import { shortName } from "../view/names";
import { shortened } from "./figure";

/** Colours there are; further series take them anew. */
export const COLOURS = 8;
const LEGEND_CHARACTERS = 90;

/** Nothing where the chart has one series alone. */
export function Legend({ names }: { names: readonly string[] }) {
  if (names.length < 2) {
    return null;
  }
  return (
    <ul class="swatches">
      {names.map((name, which) => (
        <li key={which}>
          <svg viewBox="0 0 12 12" aria-hidden="true">
            <rect class={`s${which % COLOURS}`} width="12" height="12" />
          </svg>
          {shortened(shortName(name), LEGEND_CHARACTERS)}
        </li>
      ))}
    </ul>
  );
}
