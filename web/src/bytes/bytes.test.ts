import { expect, test, vi } from "vitest";
import { GIVEN_MS, openHttp, sizeOf } from "./http";
import { keeping, Kept } from "./kept";
import { Meter } from "./meter";
import { batches, Pages, readAll } from "./pages";
import { type Crate, type Shelf, surplus } from "./shelf";
import { MemorySource, type Span } from "./source";

const source = () => new MemorySource(Uint8Array.from({ length: 100_000 }, (_, at) => at % 251));

test("neighbouring spans become one request, distant ones stay apart", () => {
  const spans: Span[] = [
    { offset: 1_000_000, length: 10 },
    { offset: 0, length: 100 },
    { offset: 150, length: 50 },
  ];
  expect(batches(spans)).toEqual([
    { offset: 0, length: 200, members: [1, 2] },
    { offset: 1_000_000, length: 10, members: [0] },
  ]);
});

test("no request is longer than a few MiB", () => {
  const spans = Array.from({ length: 10 }, (_, at) => ({ offset: at * 1_000_000, length: 1_000_000 }));
  expect(batches(spans).every((batch) => batch.length <= 4 * 1024 * 1024)).toBe(true);
});

test("every span gets its own bytes, whatever is fetched with it", async () => {
  const found = await readAll(source(), [
    { offset: 500, length: 3 },
    { offset: 10, length: 2 },
  ]);
  expect(found.map((bytes) => [...bytes])).toEqual([[500 % 251, 501 % 251, 502 % 251], [10, 11]]);
});

test("pages are fetched once, and give what lies across their borders", async () => {
  const inner = source();
  const read = vi.spyOn(inner, "read");
  const pages = new Pages(inner);
  const across = await pages.read({ offset: 16 * 1024 - 2, length: 4 });
  expect([...across]).toEqual([16382, 16383, 16384, 16385].map((at) => at % 251));
  await pages.read({ offset: 5, length: 5 });
  expect(read).toHaveBeenCalledTimes(1);
  // What lies behind is fetched in one piece, up to the end.
  const rest = await pages.read({ offset: 16 * 1024 + 1, length: 50_000 });
  expect([rest.byteLength, rest[0], rest[49_999]]).toEqual([50_000, 16_385 % 251, 66_384 % 251]);
  expect(read).toHaveBeenCalledTimes(2);
  expect(read).toHaveBeenLastCalledWith({ offset: 32 * 1024, length: 48 * 1024 });
});

test("a span beyond the end says that the file is truncated", async () => {
  await expect(source().read({ offset: 99_999, length: 2 })).rejects.toThrow("truncated or damaged");
});

test.each([
  ["bytes 0-9/1234", 1234],
  ["bytes 0-9/*", undefined],
  [null, undefined],
])("the length in %s is %s", (header, size) => {
  expect(sizeOf(header)).toBe(size);
});

/** A server with a file of `size` zeros that answers ranges. */
function serve(size: number, tags = ['"a"']): typeof fetch {
  return vi.fn(async (_url, init) => {
    const headers = new Headers(init?.headers);
    const [from = 0, to = 0] = /bytes=(\d+)-(\d+)/.exec(headers.get("Range") ?? "")?.slice(1).map(Number) ?? [];
    const tag = tags.length > 1 ? (tags.shift() ?? "") : (tags[0] ?? "");
    if (headers.has("If-Range") && headers.get("If-Range") !== tag) {
      return new Response(new Uint8Array(size), { status: 200 });
    }
    const end = Math.min(size - 1, to);
    return new Response(new Uint8Array(end - from + 1), { status: 206, headers: { "Content-Range": `bytes ${from}-${end}/${size}`, ETag: tag } });
  });
}

test("a small file is fetched whole, a large one by parts", async () => {
  vi.stubGlobal("fetch", serve(400_000));
  await (await openHttp("http://host/small")).read({ offset: 390_000, length: 10 });
  expect(fetch).toHaveBeenCalledTimes(2);
  vi.stubGlobal("fetch", serve(100_000_000));
  const large = await openHttp("http://host/large");
  expect(large.size).toBe(100_000_000);
  expect(fetch).toHaveBeenCalledTimes(1);
  vi.unstubAllGlobals();
});

test("of a server that knows no ranges the whole file is taken, unless it is too large", async () => {
  const whole = (length: number) => async () => new Response(new Uint8Array(2_000_000), { status: 200, headers: { "Content-Length": String(length) } });
  vi.stubGlobal("fetch", whole(2_000_000));
  const told: number[] = [];
  const meter: Meter = new Meter(() => told.push(Math.round(meter.share * 100)));
  const source = await openHttp("http://host/whole", meter);
  expect((await source.read({ offset: 1_999_990, length: 10 })).byteLength).toBe(10);
  expect([meter.bytes, meter.requests, meter.missing]).toEqual([2_000_000, 1, 0]);
  // The percentage rises from nothing to all.
  expect([told[0], told.at(-1)]).toEqual([0, 100]);
  expect(told).toEqual([...told].sort((a, b) => a - b));
  vi.stubGlobal("fetch", whole(2e9));
  await expect(openHttp("http://host/huge")).rejects.toThrow("answers no ranges");
  vi.unstubAllGlobals();
});

test("the percentage of a small file is of all of its parts, and of a later request of that alone", async () => {
  vi.stubGlobal("fetch", serve(400_000));
  const shares = new Set<number>();
  const meter: Meter = new Meter(() => shares.add(Math.round(meter.share * 100)));
  await openHttp("http://host/small", meter);
  expect([...shares]).toEqual([0, 49, 100]);
  expect([meter.bytes, meter.requests]).toEqual([400_000, 2]);
  const later = meter.expect(1000);
  expect([meter.share, meter.missing]).toEqual([0, 1000]);
  later.came(250);
  expect(meter.share).toBe(0.25);
  // A request that broke is waited for no longer.
  later.end();
  later.end();
  expect([meter.share, meter.missing, meter.bytes]).toEqual([1, 0, 400_250]);
});

test("a file that changes while it is read is refused", async () => {
  vi.stubGlobal("fetch", serve(100_000_000, ['"a"', '"b"']));
  const large = await openHttp("http://host/large");
  await expect(large.read({ offset: 90_000_000, length: 10 })).rejects.toThrow("changed while it was read");
  vi.unstubAllGlobals();
});

/** A shelf in memory. */
function shelfOf(files = new Map<string, Crate[]>()): Shelf {
  const of = (file: string) => files.get(file) ?? [];
  return {
    directory: async (file) => new Map(of(file).flatMap(({ names }, number) => names.map((name) => [name, number] as const))),
    crate: async (file, number) => of(file)[number],
    put: async (file, crate) => files.set(file, [...of(file), structuredClone(crate)]) && of(file).length - 1,
    drop: async (file) => void files.delete(file),
  };
}

const large = (shelf: Shelf) => openHttp("http://host/large", new Meter(), shelf).then(keeping);

test("what was read of a version is not fetched again, and another version is", async () => {
  vi.useFakeTimers();
  const shelf = shelfOf();
  const read = async (tag: string, offset: number) => {
    vi.stubGlobal("fetch", serve(100_000_000, [tag]));
    await (await large(shelf)).read({ offset, length: 10 });
    await vi.advanceTimersByTimeAsync(1000);
    return vi.mocked(fetch).mock.calls.length;
  };
  expect(await read('"a"', 9_000_000)).toBe(2);
  // Only the request that asks whether one may read, and which version there is.
  expect(await read('"a"', 9_000_000)).toBe(1);
  expect(await read('"a"', 9_000_001)).toBe(2);
  expect(await read('"b"', 9_000_000)).toBe(2);
  // A weak tag does not say that the bytes are the same, and an empty one says nothing.
  for (const tag of ['W/"a"', '""']) {
    expect(await read(tag, 9_000_000)).toBe(2);
    expect(await read(tag, 9_000_000)).toBe(2);
  }
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

test("what is kept is read only where the server said not long ago that one may", async () => {
  vi.useFakeTimers();
  const shelf = shelfOf();
  vi.stubGlobal("fetch", serve(100_000_000));
  await (await large(shelf)).read({ offset: 9_000_000, length: 10 });
  await vi.advanceTimersByTimeAsync(1000);
  const again = await large(shelf);
  const asked = vi.mocked(fetch).mock.calls.length;
  await again.read({ offset: 9_000_000, length: 10 });
  expect(fetch).toHaveBeenCalledTimes(asked);
  await vi.advanceTimersByTimeAsync(GIVEN_MS);
  await again.read({ offset: 9_000_000, length: 10 });
  expect(fetch).toHaveBeenCalledTimes(asked + 1);
  await vi.advanceTimersByTimeAsync(GIVEN_MS);
  vi.stubGlobal("fetch", async () => new Response(null, { status: 403 }));
  await expect(again.read({ offset: 9_000_000, length: 10 })).rejects.toThrow("may not read");
  await expect(large(shelf)).rejects.toThrow("may not read");
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

test("parts that are kept come back as they were, and damaged ones not at all", async () => {
  vi.useFakeTimers();
  const files = new Map<string, Crate[]>();
  const opened = () => new Kept(shelfOf(files), "file", async () => {});
  const parts = [[], [1], [2, 3, 4, 5, 6]].map((bytes) => Uint8Array.from(bytes));
  const first = opened();
  parts.forEach((part, at) => first.put(`part ${at}`, part));
  await vi.advanceTimersByTimeAsync(1000);
  const second = opened();
  expect(await Promise.all(parts.map((_, at) => second.get(`part ${at}`)))).toEqual(parts);
  expect(await second.get("part 3")).toBeUndefined();
  files.get("file")![0]!.bytes[3]! ^= 1;
  const third = opened();
  expect(await third.get("part 1")).toBeUndefined();
  expect(files.size).toBe(0);
  // It is kept anew.
  third.put("part 1", parts[1]!);
  await vi.advanceTimersByTimeAsync(1000);
  expect(await opened().get("part 1")).toEqual(parts[1]);
  vi.useRealTimers();
});

test("where nothing can be kept, everything is read all the same", async () => {
  vi.useFakeTimers();
  const refuse = async () => Promise.reject(new DOMException("no room", "QuotaExceededError"));
  const full = { ...shelfOf(), put: vi.fn(refuse) };
  vi.stubGlobal("fetch", serve(100_000_000));
  for (const shelf of [full, { directory: refuse, crate: refuse, put: refuse, drop: refuse }]) {
    const source = await large(shelf);
    for (const offset of [9_000_000, 9_100_000]) {
      expect((await source.read({ offset, length: 10 })).byteLength).toBe(10);
      await vi.advanceTimersByTimeAsync(1000);
    }
  }
  // It is not tried again and again.
  expect(full.put).toHaveBeenCalledTimes(1);
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

test("of what is kept the files go that were opened longest ago", () => {
  const entries = [3, 1, 4, 2].map((at) => ({ file: `f${at}`, at, bytes: 10 }));
  expect(surplus(entries, 40)).toEqual([]);
  expect(surplus(entries, 25)).toEqual(["f1", "f2"]);
  expect(surplus(entries, 5)).toEqual(["f3", "f1", "f4", "f2"]);
});

test.each([
  [401, "sign in"],
  [403, "may not read"],
  [404, "retention"],
  [418, "answers 418"],
])("an answer of %i says what to do", async (status, words) => {
  vi.stubGlobal("fetch", async () => new Response(null, { status }));
  await expect(openHttp("http://host/file")).rejects.toThrow(words);
  vi.unstubAllGlobals();
});
