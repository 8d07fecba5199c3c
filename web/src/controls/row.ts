/** Rows of tables that are as good as buttons. */

/** Has a click anywhere in a row do what its first button does. Its other buttons keep theirs, and texts can be selected. */
export function byRow(act: () => void): (event: MouseEvent) => void {
  return (event) => {
    const onControl = event.target instanceof Element && event.target.closest("button, a, input") !== null;
    if (!onControl && getSelection()?.isCollapsed !== false) {
      act();
    }
  };
}
