/** The timeline: rows on the left, what ran on the right, details below. */

import { useEffect, useRef, useState } from "preact/hooks";
import { isDark } from "../../app/dark";
import { lazily } from "../../app/lazily";
import type { Page } from "../../app/page";
import { useObservable } from "../../workspace/store";
import type { Workspace } from "../../workspace/workspace";
import { Controller } from "./controller";
import { attachKeys } from "./keys";
import { Labels } from "./labels";
import { attachPointer } from "./pointer";
import { RULER_HEIGHT, STRIP_HEIGHT } from "./rulers";
import { Toolbar } from "./toolbar";
import { Pointed } from "./tooltip";

const Panel = lazily(() => import("./panel"));

function Timeline({ workspace }: { workspace: Workspace }) {
  useObservable(workspace);
  const scroller = useRef<HTMLDivElement>(null);
  const sheet = useRef<HTMLDivElement>(null);
  const tracks = useRef<HTMLDivElement>(null);
  const overlay = useRef<HTMLCanvasElement>(null);
  const ruler = useRef<HTMLCanvasElement>(null);
  const strip = useRef<HTMLCanvasElement>(null);
  const [controller, setController] = useState<Controller>();
  const [failure, setFailure] = useState<string>();
  useEffect(() => {
    const elements = {
      scroller: scroller.current,
      sheet: sheet.current,
      tracks: tracks.current,
      overlay: overlay.current,
      ruler: ruler.current,
      strip: strip.current,
    };
    if (Object.values(elements).includes(null)) {
      return;
    }
    const stage = elements as { [K in keyof typeof elements]: NonNullable<(typeof elements)[K]> };
    let made: Controller;
    try {
      made = new Controller(workspace, stage, isDark());
    } catch (error) {
      setFailure(error instanceof Error ? error.message : String(error));
      return;
    }
    setController(made);
    // Tests and measurements read the figures.
    Object.assign(globalThis, { flopwatch: { controller: made, workspace } });
    const resize = () => made.resize(stage.overlay.clientWidth, stage.overlay.clientHeight);
    const observer = new ResizeObserver(resize);
    observer.observe(stage.tracks);
    const onTheme = (event: Event) => made.setDark((event as CustomEvent<boolean>).detail);
    addEventListener("flopwatch-theme", onTheme);
    const onPrint = () => made.drawForPrint();
    const onPrinted = () => made.printed(isDark());
    addEventListener("beforeprint", onPrint);
    addEventListener("afterprint", onPrinted);
    const detachPointer = attachPointer(made, stage);
    const detachKeys = attachKeys(made);
    const onScroll = () => made.schedule();
    stage.scroller.addEventListener("scroll", onScroll, { passive: true });
    return () => {
      observer.disconnect();
      removeEventListener("flopwatch-theme", onTheme);
      removeEventListener("beforeprint", onPrint);
      removeEventListener("afterprint", onPrinted);
      stage.scroller.removeEventListener("scroll", onScroll);
      detachPointer();
      detachKeys();
      made.close();
    };
  }, [workspace]);
  return (
    <div class="timeline">
      <Toolbar workspace={workspace} controller={controller} />
      <div class="axis">
        <div class="corner">
          <input
            type="search"
            placeholder="Filter rows"
            aria-label="Filter rows"
            value={workspace.arrangement.filter}
            onInput={(event) => workspace.arrange({ filter: event.currentTarget.value })}
          />
        </div>
        <div class="rulers">
          <canvas ref={strip} class="strip" style={{ height: `${STRIP_HEIGHT}px` }} role="img" aria-label="All events; the part that is seen is framed" />
          <canvas ref={ruler} class="ruler" style={{ height: `${RULER_HEIGHT}px` }} role="img" aria-label={workspace.prelude ? "Time axis; what is before 0 was before the capture window" : "Time axis"} />
        </div>
      </div>
      <div ref={scroller} class="scroller">
        <div ref={sheet} class="sheet">
          <div class="stage">
            {/* The width of the tracks is the same before and after: nothing is asked for twice. */}
            {controller ? <Labels workspace={workspace} controller={controller} /> : <div class="labels" />}
            <div ref={tracks} class="tracks">
              {/* Before them lies the canvas of the graphics, which are started before there is a file. */}
              <canvas
                ref={overlay}
                class="overlay"
                tabIndex={0}
                role="application"
                aria-label="Timeline. Arrow keys choose events and rows; press ? for all keys."
              />
              {controller && <Pointed workspace={workspace} controller={controller} />}
              {workspace.shown?.totalEvents === 0 && workspace.shown.counters.length === 0 && (
                <p class="waiting">This capture holds no events. The overview says what was captured, and what was left out.</p>
              )}
              {failure !== undefined && (
                <p class="failure" role="alert">
                  {failure}
                </p>
              )}
            </div>
          </div>
        </div>
      </div>
      {(workspace.area || workspace.selected) && <Panel workspace={workspace} />}
    </div>
  );
}

export const page: Page = { id: "timeline", title: "Timeline", order: 10, of: "file", View: Timeline };
