/** The line above the details: it is dragged, or moved by keys, to give them more room or less. */

import { settings } from "../../workspace/settings";
import { useObservable } from "../../workspace/store";

/** Id of the details. */
export const PANEL = "details";

/** Least and most shares of the page's height that the details take, in percent. */
const [LEAST, MOST] = [10, 80];

/** A key moves the line by so many percent. */
const STEP = 4;

export function Splitter() {
  const { panelShare } = useObservable(settings);
  const move = (share: number | undefined) => settings.size(share === undefined ? undefined : Math.round(Math.min(MOST, Math.max(LEAST, share))));
  const onKeyDown = (event: KeyboardEvent & { readonly currentTarget: HTMLElement }) => {
    const now = panelShare ?? shareOf(event.currentTarget);
    const shares: Readonly<Record<string, number | undefined>> = { ArrowUp: now + STEP, ArrowDown: now - STEP, Home: LEAST, End: MOST, Enter: undefined };
    if (event.key in shares) {
      // The same keys choose rows elsewhere.
      event.preventDefault();
      event.stopPropagation();
      move(shares[event.key]);
    }
  };
  const onPointerMove = (event: PointerEvent & { readonly currentTarget: HTMLElement }) => {
    const { currentTarget: line } = event;
    if (line.hasPointerCapture(event.pointerId) && line.parentElement) {
      const { bottom, height } = line.parentElement.getBoundingClientRect();
      move(((bottom - event.clientY) / height) * 100);
    }
  };
  return (
    <div
      class="splitter"
      role="separator"
      tabIndex={0}
      aria-label="Height of the details"
      aria-orientation="horizontal"
      aria-controls={PANEL}
      aria-valuemin={LEAST}
      aria-valuemax={MOST}
      aria-valuenow={panelShare ?? MOST / 2}
      aria-valuetext={panelShare === undefined ? "as high as they need" : `${panelShare} percent`}
      title="Drag, or use the arrow keys, to give the details more room; double-click or Enter: as they need"
      onKeyDown={onKeyDown}
      onMouseDown={(event) => {
        // No text is selected or dragged meanwhile.
        event.preventDefault();
        event.currentTarget.focus();
      }}
      onPointerDown={(event) => event.currentTarget.setPointerCapture(event.pointerId)}
      onPointerMove={onPointerMove}
      onDblClick={() => move(undefined)}
    />
  );
}

/** The share that the details take now, in percent. */
function shareOf(line: HTMLElement): number {
  const [panel, page] = [line.nextElementSibling, line.parentElement];
  return panel && page ? (panel.getBoundingClientRect().height / page.getBoundingClientRect().height) * 100 : LEAST;
}
