/** From a row of the summary's tables into the timeline. */

import type { EventValue } from "../engine/protocol";
import type { Workspace } from "../workspace/workspace";
import type { NamedTable } from "./tables";

/** Shows the first event of that name, with that value where one is given, of the first category of the table that has one. */
export async function showRow(workspace: Workspace, { categories }: NamedTable, name: string, value?: EventValue): Promise<void> {
  // An area that is chosen would be told in the event's place.
  await workspace.choose(undefined);
  for (const one of categories) {
    const category = workspace.header?.categories.findIndex((known) => known.name === one) ?? -1;
    if (category >= 0 && (await workspace.goToName(category, name, value))) {
      return;
    }
  }
  // Some tables write names more shortly than the timeline does.
  workspace.show("timeline");
  await workspace.find(name);
  await workspace.step(true);
}
