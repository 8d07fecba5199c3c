/** The tables of the summary: sorted and filtered as you like, as CSV, each row a way into the timeline. */

import { lazily } from "../../app/lazily";
import type { Page } from "../../app/page";

export const page: Page = { id: "tables", title: "Tables", order: 30, of: "file", View: lazily(() => import("./tables")) };
