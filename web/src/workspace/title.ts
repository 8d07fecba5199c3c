/** What a file is called where it is told apart from others: in the header, and in the tabs of the browser. */

import { RAW_ENDINGS } from "../generated/endings";

const FOREIGN = ["pt", "trace", "json", "gz", "h5", "hdf5", "sqlite", "qdrep", "qdstrm", "xplane", "hlo", "pb", "prof", "pprof", "csv", "txt"];

/** Endings of files of captures; one name may have several. */
const ENDINGS = new RegExp(`(\\.(${[...FOREIGN, ...RAW_ENDINGS].join("|")}))+$`, "i");

/**
 * The name of a file at an address that comes with none: of a gateway's capture its session's id, of an agent's the capture's name, else the
 * last part of the address.
 */
export function nameOfUrl(url: string, sessionId: string): string {
  const { pathname } = new URL(url);
  if (/\/profiling\/timeline\/[^/]+\.h5$/.test(pathname) && sessionId !== "") {
    return sessionId;
  }
  const capture = /\/captures\/([^/]+)\/artifacts\/[^/]+\.h5$/.exec(pathname)?.[1];
  return decodeURIComponent(capture ?? pathname.replace(/^.*\//, ""));
}

/** The title of the tab: the file without its endings, the page, and the program. A tab is narrow, so the file comes first. */
export function tabTitle(file: string | undefined, page: string | undefined): string {
  const stem = file?.replace(ENDINGS, "") || file;
  return [stem, page, "Flopwatch"].filter((part) => part).join(" – ");
}
