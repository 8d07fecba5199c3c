/** The frame around the pages: what is open, which page, search, theme, help. */

import { useEffect, useRef, useState } from "preact/hooks";
import { CAPTURE_ENDINGS } from "../controls/capture-endings";
import { FileButton } from "../controls/file-button";
import { seemsCut } from "../timeline/header";
import * as format from "../view/format";
import { fits } from "../workspace/first-page";
import { chosen } from "../workspace/prelude";
import { useObservable } from "../workspace/store";
import { tabTitle } from "../workspace/title";
import type { Workspace } from "../workspace/workspace";
import { Compare } from "./compare";
import { useDark } from "./dark";
import { FileFacts } from "./file-facts";
import { lazily } from "./lazily";
import { type Page, pagesOf } from "./page";
import { openInPerfetto, traceUrl } from "./perfetto";
import { Search } from "./search";

const Cut = lazily(() => import("./cut"), null);
const Dashboard = lazily(() => import("../pages/dashboard/dashboard"));
const Help = lazily(() => import("./help"), null);
const NoFile = lazily(() => import("./no-file"), null);
const SignIn = lazily(() => import("./sign-in"), null);

const PAGES = pagesOf(import.meta.glob("../pages/*/page.tsx", { eager: true }));

export function App({ workspace }: { workspace: Workspace }) {
  useObservable(workspace);
  const [dark, setDark] = useDark();
  const [help, setHelp] = useState(false);
  const [dropping, setDropping] = useState(false);
  const main = useRef<HTMLElement>(null);
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
  const pages = PAGES.filter(({ id, of }) => (of === "file" ? status.kind === "open" && (id === workspace.page || !workspace.header || fits(id, workspace.header)) : workspace.gateway !== undefined));
  const page = PAGES.find((page) => page.id === workspace.page && (page.of === "file" || workspace.gateway)) ?? PAGES.find(({ of }) => of === "file");
  const ofFile = page?.of === "file" && status.kind === "open";
  const isNamed = page?.of === "file" && (status.kind === "open" || status.kind === "dashboard");
  const title = tabTitle(isNamed ? workspace.fileName : undefined, ofFile || page?.of === "gateway" ? page?.title : undefined);
  // What stands in the place of a page has a heading of its own.
  const heading = status.kind === "dashboard" && isNamed ? "Dashboard" : ofFile || (page?.of === "gateway" && workspace.gateway?.state === "in") ? page?.title : undefined;
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
        <button type="button" class="skip" onClick={() => focusPage(main.current)}>
          Skip to the page
        </button>
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
        <button type="button" onClick={() => setDark(!dark)} aria-label={dark ? "Use light colors" : "Use dark colors"} title="Light or dark">
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
      {ofFile && workspace.header?.drops.some(seemsCut) && <Cut drops={workspace.header.drops} />}
      <main ref={main} tabIndex={-1}>
        {heading !== undefined && <h1 class="unseen">{heading}</h1>}
        {page && <Shown page={page} workspace={workspace} />}
      </main>
      <div class="announcer" role="status" aria-live="polite">
        {workspace.announcement}
      </div>
      {help && <Help onClose={() => setHelp(false)} />}
    </div>
  );
}

/** Gives the focus to the timeline where the page has one, else to the page: keys come there without the controls before it. */
function focusPage(main: HTMLElement | null): void {
  (main?.querySelector<HTMLElement>('[role="application"]') ?? main)?.focus();
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
  return status.kind === "opening" ? <Opening workspace={workspace} what={status.what} /> : <NoFile workspace={workspace} />;
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

function Opening({ workspace, what }: { workspace: Workspace; what: string }) {
  const { missing, share } = workspace.loaded;
  return (
    <section class="opening" aria-busy="true">
      <h1>Opening {what}</h1>
      <p role="status">
        {format.progress(share)} of what was asked for, {format.bytes(workspace.bytes)} read
      </p>
      <progress aria-label="Reading" max={1} {...(missing > 0 ? { value: share } : {})} />
    </section>
  );
}
