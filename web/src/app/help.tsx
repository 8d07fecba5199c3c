/** What the keys and the pointer do. */

import { useEffect, useRef, useState } from "preact/hooks";
import { emptyShelf } from "../bytes/shelf";

const KEYS: readonly (readonly [string, string])[] = [
  ["W / S", "zoom in / out"],
  ["A / D", "move left / right (with Shift: faster)"],
  ["Ctrl + wheel, pinch", "zoom at the pointer"],
  ["Wheel", "scroll the rows; sideways moves in time"],
  ["Drag", "move; or select an area, as the toolbar says"],
  ["Shift + drag", "select an area: figures by name; or move"],
  ["Click, Enter on hatching", "lead to what the GPU waited for"],
  ["Double-click", "select the event and zoom to it; again: fit it"],
  ["Drag on the axis", "zoom to that span"],
  ["0", "fit all events; again: the whole capture window alone"],
  ["B", "show what was before the window"],
  ["F", "focus the selection; again: fit it"],
  ["/", "search; Enter next, Shift+Enter before"],
  ["N / Shift+N", "next hit / hit before"],
  ["← / →", "select the event before / behind"],
  ["L / Shift+L", "select the event of the same name that is next longer / next shorter"],
  ["[ / ]", "follow to the launch / to the work of a call, operator or range"],
  ["I", "lead to what the GPU waited for before the selected work"],
  ["↑ / ↓", "choose the row that keys act on"],
  ["Enter / C", "fold the row or group"],
  ["P", "keep the row at the top"],
  ["Alt + ↑ / ↓, drag a name", "move the row or group"],
  ["M", "mark the selection or the pointer's time"],
  ["Shift+M", "remove all marks"],
  ["T", "write times in another way"],
  ["K", "color by category, by category with classic colors, or by name"],
  ["Esc", "clear the selection"],
  ["?", "this help"],
];

export function View({ onClose }: { onClose: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [forgot, setForgot] = useState(false);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} onClose={onClose} aria-label="Keyboard help">
      <h2>Keys and pointer</h2>
      <dl class="keys">
        {KEYS.map(([key, what]) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
      <p role="status">
        {forgot ? "Nothing of captures is kept in this browser." : "What was read of captures is kept in this browser, so that they open sooner the next time."}
      </p>
      <form method="dialog">
        <button type="button" disabled={forgot} onClick={() => void emptyShelf().then(() => setForgot(true))}>
          Forget them
        </button>
        {/* Enter, pressed by chance, is to delete nothing. */}
        <button type="submit" autofocus>
          Close
        </button>
      </form>
    </dialog>
  );
}
