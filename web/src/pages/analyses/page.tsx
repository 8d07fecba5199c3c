/** Every analysis of the catalogue: run by the agent or gateway that serves the capture, and shown as the page that it makes. */

import { lazily } from "../../app/lazily";
import type { Page } from "../../app/page";

export const page: Page = { id: "analyses", title: "Analyses", order: 40, of: "file", View: lazily(() => import("./analyses")) };
