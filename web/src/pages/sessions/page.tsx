/** The cluster's sessions: those that there are, where they stand, and a way to start one. */

import { lazily } from "../../app/lazily";
import type { Page } from "../../app/page";
import "./sessions.css";

export const page: Page = { id: "sessions", title: "Sessions", order: 5, of: "gateway", View: lazily(() => import("./sessions")) };
