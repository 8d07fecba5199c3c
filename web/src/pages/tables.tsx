/** The tables of the summary: sorted and filtered as you like, as CSV, each row a way into the timeline. */

import { lazily } from "../ui/lazily";
import type { Page } from "../ui/page";

export const page: Page = { id: "tables", title: "Tables", order: 30, of: "file", View: lazily(() => import("../views/tables")) };
