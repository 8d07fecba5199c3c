/** The session at a glance: busy and idle, what took the time, and what the capture does not hold. */

import { lazily } from "../ui/lazily";
import type { Page } from "../ui/page";

export const page: Page = { id: "overview", title: "Overview", order: 20, of: "file", View: lazily(() => import("../views/overview")) };
