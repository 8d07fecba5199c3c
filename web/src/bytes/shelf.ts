/** Parts of files that were fetched, kept in the browser for the next time. */

/** Keeps bytes by a key that names the file's version and the part. */
export interface Shelf {
  get(key: string): Promise<Uint8Array<ArrayBuffer> | undefined>;
  put(key: string, bytes: Uint8Array<ArrayBuffer>): void;
}

const DATABASE = "flopwatch";
/** The bytes, and what is known of them without reading them. */
const [PARTS, INDEX] = ["parts", "index"];
/** More bytes are not kept: the oldest parts go. */
const MOST_BYTES = 256 * 1024 * 1024;

/** When a part was kept, and how long it is. */
interface Entry {
  readonly key: string;
  readonly at: number;
  readonly bytes: number;
}

/**
 * The browser's own storage. Where there is none (private windows, full disks), nothing is kept and nothing fails: it only spares requests.
 */
export function openShelf(): Shelf {
  const opening = open();
  opening.then(tidy).catch(() => {});
  return {
    get: async (key) => {
      try {
        const database = await opening;
        return (await done(database.transaction(PARTS).objectStore(PARTS).get(key))) as Uint8Array<ArrayBuffer> | undefined;
      } catch {
        return undefined;
      }
    },
    put: (key, bytes) => {
      // A copy of its own length: what is given may be a view of more.
      const own = bytes.slice();
      opening
        .then((database) => {
          const both = database.transaction([PARTS, INDEX], "readwrite");
          both.objectStore(PARTS).put(own, key);
          both.objectStore(INDEX).put({ key, at: Date.now(), bytes: own.byteLength } satisfies Entry);
        })
        .catch(() => {});
    },
  };
}

/** Lets everything go. Nothing fails: where there is no storage, nothing was kept. */
export async function emptyShelf(): Promise<void> {
  try {
    const database = await open();
    const both = database.transaction([PARTS, INDEX], "readwrite");
    await Promise.all([PARTS, INDEX].map((store) => done(both.objectStore(store).clear())));
    database.close();
  } catch {
    // As above.
  }
}

function open(): Promise<IDBDatabase> {
  return new Promise((resolve, reject) => {
    const request = indexedDB.open(DATABASE, 1);
    request.onupgradeneeded = () => {
      request.result.createObjectStore(PARTS);
      request.result.createObjectStore(INDEX, { keyPath: "key" });
    };
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
    request.onblocked = () => reject(new Error("another window holds an older database"));
  });
}

function done<T>(request: IDBRequest<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

/** Lets the oldest parts go, once as the viewer starts. */
async function tidy(database: IDBDatabase): Promise<void> {
  const entries = (await done(database.transaction(INDEX).objectStore(INDEX).getAll())) as Entry[];
  const old = surplus(entries, MOST_BYTES);
  if (old.length === 0) {
    return;
  }
  const both = database.transaction([PARTS, INDEX], "readwrite");
  for (const key of old) {
    both.objectStore(PARTS).delete(key);
    both.objectStore(INDEX).delete(key);
  }
}

/** The keys of the oldest entries without which the others are at most `most` bytes. */
export function surplus(entries: readonly Entry[], most: number): string[] {
  let sum = 0;
  const kept = [...entries].sort((a, b) => b.at - a.at).filter(({ bytes }) => (sum += bytes) <= most);
  const keys = new Set(kept.map(({ key }) => key));
  return entries.filter(({ key }) => !keys.has(key)).map(({ key }) => key);
}
