/** A file on a server, fetched by ranges. */

import { Kept } from "./kept";
import { type Expected, Meter } from "./meter";
import type { Shelf } from "./shelf";
import { type ByteSource, checkInside, MemorySource, SourceError, type Span } from "./source";

/** Bytes that the first request asks for: the structure of most files, which lies at their beginning. */
export const FIRST_BYTES = 192 * 1024;

/** Smaller files are fetched whole: one request is quicker than the many that their parts would take. */
export const WHOLE_BYTES = 3 * 1024 * 1024;

/** Where a server knows no ranges, files of up to this length are fetched. */
const MOST_WHOLE_BYTES = 512 * 1024 * 1024;

/** Longer answers tell how far they are. */
const STREAMED_BYTES = 1024 * 1024;

/** For so long after an answer of the server, what is kept is read without asking it again. */
export const GIVEN_MS = 5 * 60 * 1000;

/** How often a request that met a failing network is sent. */
const ATTEMPTS = 3;

/**
 * Opens `url`. A server that knows no ranges answers with the whole file, which is then kept in memory.
 *
 * Every later range must be of the same version of the file, by its entity tag. What is kept of that version on the `shelf` is neither fetched
 * nor unpacked again; the first request always is sent, and one more where the last answer is some minutes old, so the server decides each time
 * who may read.
 */
export async function openHttp(url: string, meter = new Meter(), shelf?: Shelf): Promise<ByteSource> {
  const response = await request(url, { Range: `bytes=0-${FIRST_BYTES - 1}` });
  if (response.status === 200) {
    const length = Number(response.headers.get("Content-Length") ?? 0);
    if (length > MOST_WHOLE_BYTES) {
      await response.body?.cancel();
      throw new SourceError(`${url}: the server answers no ranges, and the file is too large to be fetched whole`);
    }
    return new MemorySource(await metered(meter, length, (expected) => body(response, expected)));
  }
  if (response.status === 416) {
    throw new SourceError(`${url}: the file is empty`);
  }
  if (response.status !== 206) {
    throw new SourceError(refusal(url, response));
  }
  const size = sizeOf(response.headers.get("Content-Range"));
  if (size === undefined) {
    throw new SourceError(`${url}: the server does not say how long the file is (Content-Range)`);
  }
  const source = new HttpSource(url, size, response.headers.get("ETag"), meter, shelf);
  await source.begin(response);
  return source;
}

/** Has the bytes of a request expected until it ends, one way or the other. */
async function metered<T>(meter: Meter, length: number, fetching: (expected: Expected) => Promise<T>): Promise<T> {
  const expected = meter.expect(length);
  try {
    return await fetching(expected);
  } finally {
    expected.end();
  }
}

/** The whole length in a `Content-Range` header, or undefined where it is unknown. */
export function sizeOf(header: string | null): number | undefined {
  const found = /^bytes \d+-\d+\/(\d+)$/.exec(header ?? "");
  return found ? Number(found[1]) : undefined;
}

class HttpSource implements ByteSource {
  readonly kept: Kept | undefined;
  private first = new Uint8Array(0);
  private whole: Promise<Uint8Array<ArrayBuffer>> | undefined;
  /** When the server last gave of this version of the file. */
  private given = Date.now();
  private asking: Promise<void> | undefined;

  constructor(
    private readonly url: string,
    readonly size: number,
    private readonly tag: string | null,
    private readonly meter: Meter,
    shelf: Shelf | undefined,
  ) {
    // Where the tag does not tell versions apart to the byte, or tells nothing, nothing is kept.
    this.kept = shelf && this.strongTag !== undefined && tag !== '""' ? new Kept(shelf, `${tag} ${size} ${url}`, () => this.allowed()) : undefined;
  }

  /** Takes the first answer. A small file is fetched whole with it, unless parts of it are kept: then the rest comes when it is needed. */
  async begin(response: Response): Promise<void> {
    const whole = this.isWhole && !(await this.kept?.isKnown());
    await metered(this.meter, whole ? this.size : Math.min(FIRST_BYTES, this.size), async (expected) => {
      this.first = await body(response, expected);
      if (whole) {
        await this.all(expected);
      }
    });
  }

  private get isWhole(): boolean {
    return this.size <= WHOLE_BYTES;
  }

  /** A weak tag may not be used for ranges. */
  private get strongTag(): string | undefined {
    return this.tag === null || this.tag.startsWith("W/") ? undefined : this.tag;
  }

  async read(span: Span): Promise<Uint8Array<ArrayBuffer>> {
    checkInside(span, this.size);
    const end = span.offset + span.length;
    if (end <= this.first.byteLength) {
      return this.first.subarray(span.offset, end);
    }
    if (span.length === 0) {
      return new Uint8Array(0);
    }
    return this.isWhole ? (await this.all()).subarray(span.offset, end) : this.fetch(span);
  }

  /** The whole file: the first answer, and the rest. */
  private all(expected?: Expected): Promise<Uint8Array<ArrayBuffer>> {
    const { size, first } = this;
    const fetch = async () => {
      const span = { offset: first.byteLength, length: size - first.byteLength };
      const rest = span.length > 0 ? await this.fetch(span, expected) : new Uint8Array(0);
      const whole = new Uint8Array(size);
      whole.set(first);
      whole.set(rest, first.byteLength);
      return whole;
    };
    if (!this.whole) {
      this.whole = fetch();
      // It may be asked for again.
      this.whole.catch(() => (this.whole = undefined));
    }
    return this.whole;
  }

  /** Resolves while the server gives this version of the file; it is asked again where its last answer is old. */
  private allowed(): Promise<void> {
    if (Math.abs(Date.now() - this.given) < GIVEN_MS) {
      return Promise.resolve();
    }
    this.asking ??= this.fetch({ offset: 0, length: 1 })
      .then(() => {})
      .finally(() => (this.asking = undefined));
    return this.asking;
  }

  private async fetch(span: Span, expected?: Expected): Promise<Uint8Array<ArrayBuffer>> {
    if (!expected) {
      return metered(this.meter, span.length, (expected) => this.fetch(span, expected));
    }
    const headers: Record<string, string> = { Range: `bytes=${span.offset}-${span.offset + span.length - 1}` };
    if (this.strongTag !== undefined) {
      headers["If-Range"] = this.strongTag;
    }
    const response = await request(this.url, headers);
    if (response.status === 200) {
      await response.body?.cancel();
      throw new SourceError(`${this.url}: the file changed while it was read; open it again`);
    }
    if (response.status !== 206) {
      throw new SourceError(refusal(this.url, response));
    }
    const bytes = await body(response, expected);
    if (bytes.byteLength !== span.length) {
      throw new SourceError(`${this.url}: ${bytes.byteLength} bytes came where ${span.length} were asked for`);
    }
    this.given = Date.now();
    return bytes;
  }
}

async function request(url: string, headers: Record<string, string>): Promise<Response> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      const response = await fetch(url, { headers, cache: "no-cache" });
      if (response.status < 500 || attempt === ATTEMPTS) {
        return response;
      }
      await response.body?.cancel();
    } catch (error) {
      if (attempt === ATTEMPTS) {
        throw new SourceError(`${url}: cannot be reached: ${error instanceof Error ? error.message : String(error)}`);
      }
    }
    await new Promise((wake) => setTimeout(wake, 200 * 2 ** attempt * (0.5 + Math.random())));
  }
}

async function body(response: Response, expected: Expected): Promise<Uint8Array<ArrayBuffer>> {
  // The length is that of the encoded bytes where there is an encoding.
  const length = response.headers.has("Content-Encoding") ? 0 : Number(response.headers.get("Content-Length") ?? 0);
  if (length < STREAMED_BYTES || !response.body) {
    const buffer = await response.arrayBuffer();
    expected.came(buffer.byteLength);
    expected.answered();
    return new Uint8Array(buffer);
  }
  const whole = new Uint8Array(length);
  const reader = response.body.getReader();
  let at = 0;
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    if (at + part.value.byteLength > length) {
      throw new SourceError("more bytes came than the server said");
    }
    whole.set(part.value, at);
    at += part.value.byteLength;
    expected.came(part.value.byteLength);
  }
  expected.answered();
  return whole.subarray(0, at);
}

function refusal(url: string, response: Response): string {
  switch (response.status) {
    case 401:
      return `${url}: the server asks who you are (401); sign in, or open the link through \`kubectl flopwatch proxy\``;
    case 403:
      return `${url}: you may not read this session (403); ask for the right to \`get\` it`;
    case 404:
      return `${url}: there is no such file (404); it may have reached the end of its retention`;
    default:
      return `${url}: the server answers ${response.status} ${response.statusText}`.trimEnd();
  }
}
