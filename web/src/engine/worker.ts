/** The worker: owns the file, so that reading and searching never hold up the page. */

import { openHttp } from "../bytes/http";
import { keeping } from "../bytes/kept";
import { Meter } from "../bytes/meter";
import { openShelf } from "../bytes/shelf";
import { BlobSource, type ByteSource } from "../bytes/source";
import { NotTimeline, OtherLayout } from "../hdf5/cursor";
import { unpacked } from "../hdf5/filters";
import { openTimeline, type TimelineFile } from "../timeline/file";
import { nsPerPixel, padded, whole, within } from "../view/scale";
import type { Finder } from "./find";
import type { Added, Area, Call, EventPlace, EventRef, EventValue, First, IdleTime, Place, Query, Request, Response, View, ViewRequest } from "./protocol";
import { Session } from "./session";

interface Scope {
  postMessage(message: Response, transfer: Transferable[]): void;
  onmessage: ((event: MessageEvent<Request>) => void) | null;
}

const scope = self as unknown as Scope;

const shelf = openShelf();

/** Parts that the first picture does not need. */
const later = {
  area: () => import("./area"),
  byLength: () => import("./by-length"),
  density: () => import("./density"),
  distribution: () => import("./distribution"),
  find: () => import("./find"),
  flow: () => import("./flow"),
  held: () => import("./held"),
  idle: () => import("./idle"),
  prelude: () => import("../timeline/prelude"),
};

/** So long after the worker is there, they are fetched: they are there when the network is gone. */
const AHEAD_INTERVAL = 1500;

setTimeout(() => {
  const parts: readonly (() => Promise<unknown>)[] = Object.values(later);
  parts.forEach((part) => part().catch(() => {}));
}, AHEAD_INTERVAL);

/** What the timeline shows: the window, and the prelude where there is one. */
let session: Session | undefined;
/** The window alone, of which all figures are. */
let window: Session | undefined;
/** What finds in `session`; undefined until something is looked for there. */
let finder: Finder | undefined;

/** The newest request of those that replace each other. */
const newest = new Map<Call, number>();

let meter = new Meter();
let told = 0;

function tell(): void {
  const { bytes, requests, missing, share } = meter;
  const { chunks, clock } = unpacked;
  scope.postMessage({ loaded: { bytes, requests, fetchMs: meter.clock.ms, unpacked: chunks, unpackMs: clock.ms, missing, share } }, []);
}

function tellSometimes(): void {
  const now = performance.now();
  if (now - told > 50) {
    told = now;
    tell();
  }
}

/** What was asked is of a file that is not open. */
class Closed extends Error {
  override name = "Closed";
}

function open(of = session): Session {
  if (!of) {
    throw new Closed("no file is open");
  }
  return of;
}

/** A file of another layout is read by HDF5's own library, which is fetched only then. */
async function openAny(source: ByteSource): Promise<TimelineFile> {
  try {
    return await openTimeline(source);
  } catch (error) {
    if (!(error instanceof OtherLayout)) {
      throw error;
    }
    const { openForeign } = await import("../timeline/foreign");
    return openForeign(keeping(source));
  }
}

async function sourceOf(place: Place, meter: Meter): Promise<ByteSource> {
  return "url" in place ? openHttp(place.url, meter, shelf) : new BlobSource(place.file, meter);
}

/** Opens a file. The one that is open stays so: the other may be none that is read. */
async function openFile(place: Place): Promise<Session> {
  const last = meter;
  const own = new Meter(tellSometimes);
  meter = own;
  try {
    return new Session(await openAny(await sourceOf(place, own)));
  } catch (error) {
    if (meter === own) {
      meter = last;
    }
    throw error;
  }
}

/** What finds in the open file. */
async function finding(): Promise<Finder> {
  const { Finder } = await later.find();
  finder ??= new Finder(open());
  return finder;
}

/** Reads what the page will ask for when it has heard of the file. What fails here fails again there. */
function readAhead(session: Session, first: First | undefined): void {
  if (first) {
    const { extent, beginNs: begin, durationNs: end } = session.file.header;
    const axis = { begin, end: Math.max(1, end) };
    const viewport = first.span ? within(first.span.from, first.span.to, first.width, axis) : whole(extent, first.width, axis);
    session.ahead({ ...padded(viewport), nsPerPixel: nsPerPixel(viewport), named: false }).catch(() => {});
  }
}

async function answer(request: Request): Promise<unknown> {
  const { call, args, id } = request;
  const stale = () => newest.get(call) !== id;
  switch (call) {
    case "open": {
      const opened = await openFile(args[0] as Place);
      if (stale()) {
        return undefined;
      }
      session = opened;
      window = opened;
      finder = undefined;
      readAhead(opened, args[1] as First | undefined);
      return opened.file.header;
    }
    case "prelude": {
      const own = open(window);
      const prelude = await openAny(await sourceOf(args[0] as Place, meter));
      const both = new Session((await later.prelude()).withPrelude(own.file, prelude), own);
      const held = await (await later.held()).heldRows(both, own.file.categories.length, prelude.header.drops);
      if (stale() || own !== window) {
        return undefined;
      }
      session = both;
      finder = undefined;
      return { prelude: prelude.header, both: both.file.header, held } satisfies Added;
    }
    case "withoutPrelude":
      session = open(window);
      finder = undefined;
      return undefined;
    case "names":
      return open().category(args[0] as number).names();
    case "view":
      return open().view(args[0] as ViewRequest, stale);
    case "event":
      return open().event(args[0] as EventRef);
    case "flow":
      return (await later.flow()).flowOf(open(window), args[0] as EventRef);
    case "idleCause":
      return (await later.idle()).idleCauseOf(open(window), args[0] as IdleTime);
    case "search":
      return (await finding()).search((args[0] as Query).text, stale);
    case "next":
      return (await finding()).next(args[0] as EventPlace | undefined, args[1] as number, args[2] as boolean);
    case "instanceOf":
      return (await finding()).instanceOf(args[0] as number, args[1] as string, args[2] as EventValue | undefined);
    case "besideByLength":
      return (await later.byLength()).besideByLength(open(), args[0] as EventRef, args[1] as boolean, stale);
    case "area":
      return (await later.area()).areaStats(open(), args[0] as Area, stale);
    case "sample":
      return open().sample(args[0] as number, args[1] as number);
    case "series": {
      const { t, value } = await open(window).samples(args[0] as number);
      return (await later.distribution()).thinned(t, value, args[1] as number);
    }
    case "density":
      return (await later.density()).densityOf(open());
    case "distribution":
      return (await later.distribution()).distributionOf(open(window), args[0] as number, () => false);
    case "summary":
      return open(window).file.summary();
  }
}

scope.onmessage = (event) => {
  const request = event.data;
  newest.set(request.call, request.id);
  answer(request).then(
    (answer) => {
      tell();
      const transfer =
        request.call === "view" && answer
          ? [(answer as View).instances, (answer as View).events.buffer, (answer as View).counts.buffer]
          : [];
      scope.postMessage({ id: request.id, answer }, transfer);
    },
    (error: unknown) => {
      const kind = error instanceof NotTimeline ? "foreign" : error instanceof Closed ? "closed" : undefined;
      scope.postMessage({ id: request.id, error: error instanceof Error ? error.message : String(error), kind }, []);
    },
  );
};
