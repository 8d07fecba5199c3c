/** The frame around the pages: what is open, which page, search, theme, help. */

import { useEffect, useState } from "preact/hooks";
import demo from "../../tests/data/synthetic.h5?url";
import { CAPTURE_ENDINGS } from "../controls/capture-file";
import { FileButton } from "../controls/file-button";
import type { PageDocument } from "../generated/catalogue";
import type { Drop } from "../timeline/header";
import * as format from "../view/format";
import { hrefOf, type HeldCapture } from "../workspace/captures";
import { chosen } from "../workspace/prelude";
import type { Status } from "../workspace/state";
import { useObservable } from "../workspace/store";
import { tabTitle } from "../workspace/title";
import type { Workspace } from "../workspace/workspace";
import { Compare, Facts } from "./compare";
import { useDark } from "./dark";
import { lazily } from "./lazily";
import { type Page, pagesOf } from "./page";
import { openInPerfetto, traceUrl } from "./perfetto";
import { Search } from "./search";
import { SignIn } from "./sign-in";

const Help = lazily(() => import("./help"));
const Dashboard = lazily(() => import("../pages/dashboard/dashboard"));

const Cut = lazily(() => import("./cut"));

const PAGES = pagesOf(import.meta.glob("../pages/*/page.tsx", { eager: true }));

export function App({ workspace }: { workspace: Workspace }) {
  useObservable(workspace);
  const [dark, setDark] = useDark();
  const [help, setHelp] = useState(false);
  const [dropping, setDropping] = useState(false);
  const { status } = workspace;
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (!isTyping(event.target) && event.key === "?") {
        setHelp((shown) => !shown);
      }
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);
  const onDrop = (event: DragEvent) => {
    setDropping(false);
    const files = [...(event.dataTransfer?.files ?? [])];
    if (files.length > 0) {
      event.preventDefault();
      openFiles(workspace, files);
    }
  };
  const pages = PAGES.filter(({ of }) => (of === "file" ? status.kind === "open" : workspace.gateway !== undefined));
  const page = PAGES.find((page) => page.id === workspace.page && (page.of === "file" || workspace.gateway)) ?? PAGES.find(({ of }) => of === "file");
  const ofFile = page?.of === "file" && status.kind === "open";
  const isNamed = page?.of === "file" && (status.kind === "open" || status.kind === "dashboard");
  const title = tabTitle(isNamed ? workspace.fileName : undefined, ofFile || page?.of === "gateway" ? page?.title : undefined);
  useEffect(() => {
    document.title = title;
  }, [title]);
  return (
    <div
      class={dropping ? "app dropping" : "app"}
      data-theme={dark ? "dark" : "light"}
      onDragOver={(event) => {
        if (event.dataTransfer?.types.includes("Files")) {
          event.preventDefault();
          setDropping(true);
        }
      }}
      onDragLeave={(event) => event.relatedTarget === null && setDropping(false)}
      onDrop={onDrop}
    >
      <header>
        <span class="brand">Flopwatch</span>
        {pages.length > 0 && (
          <nav aria-label="Pages">
            {pages.map((one) => (
              <button key={one.id} type="button" aria-current={one.id === page?.id ? "page" : undefined} onClick={() => workspace.show(one.id)}>
                {one.title}
              </button>
            ))}
          </nav>
        )}
        {ofFile && <Search workspace={workspace} />}
        <span class="space" />
        {ofFile && <FileFacts workspace={workspace} />}
        {ofFile && <Compare workspace={workspace} />}
        {ofFile && workspace.url !== undefined && <InPerfetto workspace={workspace} url={traceUrl(workspace.url)} />}
        <FileButton accept={CAPTURE_ENDINGS} label="Open a file" multiple onFiles={(files) => openFiles(workspace, files)}>
          Open…
        </FileButton>
        <button type="button" onClick={() => setDark(!dark)} aria-label={dark ? "Use light colours" : "Use dark colours"} title="Light or dark">
          {dark ? "☀" : "☾"}
        </button>
        <button type="button" onClick={() => setHelp(true)} aria-label="Keyboard help" title="Keyboard help (?)">
          ?
        </button>
      </header>
      {workspace.problem !== undefined && (
        <div class="problem" role="alert">
          {workspace.problem}
          <button type="button" onClick={() => workspace.dismiss()}>
            Dismiss
          </button>
        </div>
      )}
      {ofFile && workspace.header?.drops.some(({ reason }) => reason === "truncated") && <Cut drops={workspace.header.drops} />}
      <main>{page && <Shown page={page} workspace={workspace} />}</main>
      <div class="announcer" role="status" aria-live="polite">
        {workspace.announcement}
      </div>
      {help && <Help onClose={() => setHelp(false)} />}
    </div>
  );
}

/** The page, or what stands before it: nobody is signed in, or no file is open. */
function Shown({ page, workspace }: { page: Page; workspace: Workspace }) {
  const { gateway, status } = workspace;
  if (page.of === "file" && status.kind === "open") {
    return <page.View key={status.what} workspace={workspace} />;
  }
  if (page.of === "file" && status.kind === "dashboard") {
    return <Dashboard what={status.what} file={status.file} document={status.document} />;
  }
  if (gateway && (page.of === "gateway" || status.kind === "failed")) {
    switch (gateway.state) {
      case "asking":
        return <p class="waiting">Asking who is signed in…</p>;
      case "out":
        return <SignIn gateway={gateway} why={page.of === "file" && status.kind === "failed" ? status.why : undefined} />;
      case "in":
        if (page.of === "gateway") {
          return <page.View workspace={workspace} />;
        }
    }
  }
  return <Opening workspace={workspace} />;
}

/** Opens a file of this machine, with its prelude where that was given too, on a page that shows one. */
function openFiles(workspace: Workspace, files: readonly File[]): void {
  const { file, prelude } = chosen(files);
  if (!file) {
    return;
  }
  if (PAGES.find(({ id }) => id === workspace.page)?.of === "gateway") {
    workspace.leaveGateway();
  }
  void workspace.open({ file }, file.name, prelude);
}

/** Whether keys are text now. */
export function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLInputElement || target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement;
}

/** Fewer bytes are there before one could read how many are. */
const MANY_BYTES = 256 * 1024;

async function showDemoDashboard(workspace: Workspace): Promise<void> {
  try {
    const { default: document } = await import("../../tests/data/operations.page.json");
    workspace.showDashboard("demo", document as unknown as PageDocument);
  } catch (error) {
    workspace.report(error);
  }
}

function FileFacts({ workspace }: { workspace: Workspace }) {
  const { header, shown, prelude } = workspace;
  if (!header || !shown) {
    return null;
  }
  return (
    <span class="facts">
      <span class="file-name" title={`${workspace.fileName}, session ${header.sessionId || "without an id"}`}>
        {workspace.fileName}
      </span>
      <span class="count">{format.grouped(header.totalEvents)} events</span>
      <span class="length">{format.duration(header.durationNs)}</span>
      {workspace.loaded.missing > MANY_BYTES && (
        <span class="loading">
          <progress aria-label="Reading" max={1} value={workspace.loaded.share} /> {format.progress(workspace.loaded.share)}
        </span>
      )}
      <span class="bytes" title={`${format.grouped(workspace.requests)} requests`}>
        {workspace.bytes < shown.fileBytes && `${format.bytes(workspace.bytes)} of `}
        {format.bytes(shown.fileBytes)}
      </span>
      <Lost workspace={workspace} drops={header.drops} what="left out or changed" />
      {prelude && <Lost workspace={workspace} drops={prelude.drops} what="gone before the window" />}
    </span>
  );
}

/** Reasons by which nothing is missing: a part of the source holds nothing, or the reader decided what it does not say. */
const NOTHING_MISSING: ReadonlySet<string> = new Set(["idle", "inferred"]);

/** How many events are not in a file, or not as they were. */
function Lost({ workspace, drops, what }: { workspace: Workspace; drops: readonly Drop[]; what: string }) {
  const missing = drops.filter(({ reason }) => !NOTHING_MISSING.has(reason));
  const lost = missing.reduce((sum, drop) => sum + drop.count, 0);
  return lost === 0 ? null : (
    <button type="button" class="warn" onClick={() => workspace.show("overview")} title={missing.map((drop) => `${drop.count} × ${drop.what}: ${drop.reason}`).join("\n")}>
      {format.grouped(lost)} {what}
    </button>
  );
}

function InPerfetto({ workspace, url }: { workspace: Workspace; url: string | undefined }) {
  const [busy, setBusy] = useState(false);
  if (url === undefined) {
    return null;
  }
  const open = async () => {
    setBusy(true);
    try {
      await openInPerfetto(url, document.title);
    } catch (error) {
      workspace.report(error);
    } finally {
      setBusy(false);
    }
  };
  return (
    <button type="button" disabled={busy} onClick={() => void open()} title="Perfetto comes up in a window of its own and reads the capture in this browser; nothing is uploaded">
      <span class="long">Open in</span> Perfetto
    </button>
  );
}

function Converting({ status: { what, sent, size, cancel } }: { status: Extract<Status, { kind: "converting" }> }) {
  const there = sent >= size;
  return (
    <section class="opening" aria-busy="true">
      <h1>Converting {what}</h1>
      <p role="status">
        {there ? `${format.bytes(size)} sent; the program that serves this page makes a timeline of it…` : `${format.progress(sent / Math.max(1, size))}: ${format.bytes(sent)} of ${format.bytes(size)} sent`}
      </p>
      {there ? <progress aria-label="Converting" /> : <progress aria-label="Sending" max={size} value={sent} />}
      <p>
        <button type="button" onClick={cancel}>
          Cancel
        </button>
      </p>
    </section>
  );
}

function Opening({ workspace }: { workspace: Workspace }) {
  const { status } = workspace;
  switch (status.kind) {
    case "opening":
      return (
        <section class="opening" aria-busy="true">
          <h1>Opening {status.what}</h1>
          <p role="status">
            {format.progress(workspace.loaded.share)} of what was asked for, {format.bytes(workspace.bytes)} read
          </p>
          {workspace.loaded.missing > 0 ? <progress aria-label="Reading" max={1} value={workspace.loaded.share} /> : <progress aria-label="Reading" />}
        </section>
      );
    case "converting":
      return <Converting status={status} />;
    case "failed":
      return (
        <section class="opening" role="alert">
          <h1>{status.what} cannot be shown</h1>
          <p>{status.why}</p>
        </section>
      );
    default:
      return (
        <section class="opening">
          {workspace.captures.held?.length ? <HeldList held={workspace.captures.held} /> : <h1>No capture is open</h1>}
          <p>
            Drop a timeline file (timeline.h5) here, or choose one with Open. It is read on this machine and sent nowhere. With its prelude (prelude.h5),
            given together with it, one sees what was before the window too.
          </p>
          <p>
            Captures of Nsight Systems, PyTorch, JAX and Nsight Compute may be dropped too where <code>flopwatch serve</code> serves this page: it converts
            them on this machine. Elsewhere, <code>flopwatch convert</code> makes a timeline file of each. Of a profile of operations (JSON with
            entries and a summary, as <code>operations-profile</code> has them) it shows the dashboard.
          </p>
          <p>
            <a href={`?file=${encodeURIComponent(new URL(demo, location.href).pathname)}`}>Show the demo</a>: 7 000 made-up events of a GPU. Or{" "}
            <button type="button" class="link" onClick={() => void showDemoDashboard(workspace)}>
              the dashboard of a made-up profile
            </button>
            .
          </p>
        </section>
      );
  }
}

/** What this page's server holds. */
function HeldList({ held }: { held: readonly HeldCapture[] }) {
  return (
    <>
      <h1>Captures</h1>
      <ul class="captures">
        {held.map((capture) => (
          <li key={capture.capture}>
            <a href={hrefOf(capture)}>{capture.file}</a> <Facts capture={capture} />
          </li>
        ))}
      </ul>
    </>
  );
}
