/** Parts of files, as they were read and unpacked, kept in the browser for the next time. */

/** Parts of a file that are kept together. */
export interface Crate {
  readonly names: readonly string[];
  readonly lengths: readonly number[];
  /** The parts, one behind the other. */
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** Of all of that; see `sumOf`. */
  readonly sum: number;
}

/** Keeps crates of files. A file's name tells its version, so what is kept of it never changes. */
export interface Shelf {
  /** The number of the crate that each part of the file is in. */
  directory(file: string): Promise<ReadonlyMap<string, number>>;
  crate(file: string, number: number): Promise<Crate | undefined>;
  /** Keeps a crate; its number, or undefined where there is no room for more of the file. Rejects where nothing can be kept. */
  put(file: string, crate: Crate): Promise<number | undefined>;
  /** Lets a file go. */
  drop(file: string): Promise<void>;
}

const DATABASE = "flopwatch";
/** The crates and each file's directory, and what is known of the files. */
const [PARTS, INDEX] = ["parts", "index"];
const DIRECTORY = "directory";
/** Under this key is when all was let go the last time: what was read before that is not kept after it. */
const EMPTIED = "emptied";

/** More bytes are not kept: the files that were opened longest ago go. */
export const MOST_BYTES = 512 * 1024 * 1024;
/** Of one file, so that it leaves room for others. */
const MOST_OF_FILE = MOST_BYTES / 2;
/** What was not opened for so long goes, too: it would be there when nobody has a right to it any more. */
const MOST_MS = 7 * 24 * 3600 * 1000;

/** How long after a file is opened this is noted. */
const TOUCH_MS = 2000;

/** What is known of a file. */
interface Entry {
  readonly file: string;
  /** When it was opened the last time. */
  readonly at: number;
  readonly bytes: number;
  readonly crates: number;
}

/** The browser's own storage. Where there is none (private windows, full disks), its promises reject. */
export function openShelf(most = MOST_BYTES): Shelf {
  const opening = open();
  const emptied = opening.then((database) => done(database.transaction(PARTS).objectStore(PARTS).get(EMPTIED)));
  // It is told to who asks for a part.
  emptied.catch(() => {});
  return {
    directory: async (file) => {
      const database = await opening;
      const known = await done<ReadonlyMap<string, number> | undefined>(database.transaction(PARTS).objectStore(PARTS).get([file, DIRECTORY]));
      // Later: what is read meanwhile would wait for it.
      setTimeout(() => void touch(database, file).catch(() => {}), TOUCH_MS);
      return known ?? new Map();
    },
    crate: async (file, number) => done((await opening).transaction(PARTS).objectStore(PARTS).get([file, number])),
    put: async (file, crate) => {
      const known = await emptied;
      const both = (await opening).transaction([PARTS, INDEX], "readwrite");
      const [parts, index] = [both.objectStore(PARTS), both.objectStore(INDEX)];
      const ended = ending(both);
      const reading = Promise.all([done(parts.get(EMPTIED)), done<Entry[]>(index.getAll()), done<Map<string, number> | undefined>(parts.get([file, DIRECTORY]))]);
      // What fails in between ends it, too.
      ended.catch(() => {});
      const number = await reading.then(([now, entries, directory = new Map<string, number>()]) => {
        if (now !== known) {
          throw new Error("what was kept was let go meanwhile");
        }
        const own = entries.find((entry) => entry.file === file);
        const bytes = (own?.bytes ?? 0) + crate.bytes.byteLength;
        if (bytes > Math.min(MOST_OF_FILE, most)) {
          return undefined;
        }
        for (const other of surplus(entries.filter((entry) => entry !== own), most - bytes)) {
          remove(parts, index, other);
        }
        const number = own?.crates ?? 0;
        crate.names.forEach((name) => directory.set(name, number));
        parts.put(crate, [file, number]);
        parts.put(directory, [file, DIRECTORY]);
        index.put({ file, at: Date.now(), bytes, crates: number + 1 } satisfies Entry);
        return number;
      });
      await ended;
      return number;
    },
    drop: async (file) => {
      const both = (await opening).transaction([PARTS, INDEX], "readwrite");
      remove(both.objectStore(PARTS), both.objectStore(INDEX), file);
      await ending(both);
    },
  };
}

/** Lets everything go. Nothing fails: where there is no storage, nothing was kept. */
export async function emptyShelf(): Promise<void> {
  try {
    const database = await open();
    const both = database.transaction([PARTS, INDEX], "readwrite");
    [PARTS, INDEX].forEach((store) => both.objectStore(store).clear());
    // Other windows have read parts that they would keep now.
    both.objectStore(PARTS).put(Date.now() + Math.random(), EMPTIED);
    await ending(both);
    database.close();
  } catch {
    // As above.
  }
}

function open(): Promise<IDBDatabase> {
  return new Promise((resolve, reject) => {
    // What earlier viewers kept has another form.
    const request = indexedDB.open(DATABASE, 2);
    request.onupgradeneeded = () => {
      const database = request.result;
      [...database.objectStoreNames].forEach((name) => database.deleteObjectStore(name));
      database.createObjectStore(PARTS);
      database.createObjectStore(INDEX, { keyPath: "file" });
    };
    request.onsuccess = () => {
      const database = request.result;
      database.onversionchange = () => database.close();
      resolve(database);
    };
    request.onerror = () => reject(request.error);
    request.onblocked = () => reject(new Error("another window holds an older database"));
  });
}

function done<T>(request: IDBRequest): Promise<T> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result as T);
    request.onerror = () => reject(request.error);
  });
}

function ending(transaction: IDBTransaction): Promise<void> {
  return new Promise((resolve, reject) => {
    transaction.oncomplete = () => resolve();
    transaction.onabort = () => reject(transaction.error ?? new Error("nothing can be kept"));
  });
}

/** Notes that the file is opened, and lets go what was not opened for long. */
async function touch(database: IDBDatabase, file: string): Promise<void> {
  const both = database.transaction([PARTS, INDEX], "readwrite");
  const [parts, index] = [both.objectStore(PARTS), both.objectStore(INDEX)];
  const now = Date.now();
  for (const entry of await done<Entry[]>(index.getAll())) {
    if (entry.file === file) {
      index.put({ ...entry, at: now });
    } else if (now - entry.at > MOST_MS) {
      remove(parts, index, entry.file);
    }
  }
}

function remove(parts: IDBObjectStore, index: IDBObjectStore, file: string): void {
  index.delete(file);
  // Arrays come behind all numbers and texts.
  parts.delete(IDBKeyRange.bound([file], [file, []]));
}

/** The files that were opened longest ago, without which the others are at most `most` bytes. */
export function surplus(entries: readonly Pick<Entry, "file" | "at" | "bytes">[], most: number): string[] {
  let sum = 0;
  const kept = [...entries].sort((a, b) => b.at - a.at).filter(({ bytes }) => (sum += bytes) <= most);
  const files = new Set(kept.map(({ file }) => file));
  return entries.filter(({ file }) => !files.has(file)).map(({ file }) => file);
}
