/** The cluster's sessions: those that there are, where they stand, and a way to start one. */

import { lazily } from "../ui/lazily";
import type { Page } from "../ui/page";

export const page: Page = { id: "sessions", title: "Sessions", order: 5, of: "gateway", View: lazily(() => import("../views/sessions")) };
