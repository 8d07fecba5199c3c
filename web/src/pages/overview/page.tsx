/** The session at a glance: busy and idle, what took the time, and what the capture does not hold. */

import { lazily } from "../../app/lazily";
import type { Page } from "../../app/page";

export const page: Page = { id: "overview", title: "Overview", order: 8, of: "file", View: lazily(() => import("./overview")) };
