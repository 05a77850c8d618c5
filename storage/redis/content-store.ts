/**
 * The content of a site on Redis. One function makes each change, so it is stored as a whole or not
 * at all.
 */

import { randomUUID } from "node:crypto";
import type {
  ContentBasis,
  ContentChange,
  ContentChanges,
  ContentRecord,
  ContentStore,
  ContentWrite,
} from "../../src/content/store.js";
import type { Logger } from "../../src/core/logger.js";
import { decodeStoredText, encodeStoredText } from "../stored-text.js";
import type { LayoutGuard } from "./layout.js";
import type { ContentKeys } from "./partition.js";
import type { Session } from "./session.js";

/** Records in one page of a load. */
const PAGE = 1_000;
/** The most whole records that one call reads. */
const READ_PER_CALL = 100;
/**
 * The most commits whose nonces this process remembers: it continues from the last one that it
 * knows.
 */
const COMMITS_KNOWN = 100;

export interface ContentStoreOptions {
  readonly keys: ContentKeys;
  readonly session: Session;
  readonly layout: LayoutGuard;
  readonly isReplicated: boolean;
  /**
   * Records whose last change a caller can catch up with, and commits that are recognised when they
   * are sent again.
   */
  readonly changesKept: number;
  readonly logger: Logger;
}

/** Identifies a commit: its sequence number, and the nonce that was generated for it. */
interface LastCommit {
  sequence: number;
  nonce: string;
}

type Texts = readonly (string | null)[];

type Page = readonly [run: string, cursor: string, texts: readonly string[]];

function decodeLastCommit(text: string | null): LastCommit {
  const [sequence = "0", nonce = ""] = (text ?? "0 ").split(" ");
  return { sequence: Number(sequence), nonce };
}

const toChange = ({ key, expectedVersion, record }: ContentWrite): ContentChange => ({
  key,
  version: record === null ? 0 : expectedVersion + 1,
  columns: record?.columns ?? null,
});

export function createRedisContentStore(options: ContentStoreOptions): ContentStore {
  const { keys, session, layout, isReplicated, changesKept, logger } = options;
  /** Nonces by sequence number. If the same number has another nonce now, the data was replaced. */
  const nonces = new Map<number, string>();

  const remember = ({ sequence, nonce }: LastCommit): void => {
    nonces.delete(sequence);
    nonces.set(sequence, nonce);
    const [oldest] = nonces.keys();
    if (nonces.size > COMMITS_KNOWN && oldest !== undefined) nonces.delete(oldest);
  };

  /** The last commit of this store, if it followed on one that was known. */
  let lastCommit: (LastCommit & { changes: readonly ContentChange[] }) | undefined;

  const connect = async () => {
    await session.open(layout);
    await session.time.refresh();
    return session.connection();
  };
  const readLast = async (): Promise<LastCommit> =>
    decodeLastCommit((await (await connect()).call("HGET", keys.key("meta"), "last")) as string | null);

  /**
   * Yields pages of columns. A cursor is not valid on a server that was restarted, so the scan
   * begins again there: a record may come twice.
   */
  async function* scan() {
    const page = async (cursor: string): Promise<Page> =>
      (await (await connect()).run("contentScan", keys, [JSON.stringify({ cursor, count: PAGE })])) as Page;
    let next: Promise<Page> | undefined = page("0");
    let run: string | undefined;
    while (next !== undefined) {
      const [of, cursor, texts] = (await next) as Page;
      const isSameServer = run === undefined || of === run;
      run = of;
      const isOver = isSameServer && cursor === "0";
      // Requested while the caller works on this page.
      next = isOver ? undefined : page(isSameServer ? cursor : "0");
      next?.catch(() => {});
      yield decodeChanges(texts);
    }
  }

  return Object.freeze<ContentStore>({
    now: () => session.time.now(),
    connectionProblem: session.connectionProblem,

    async load() {
      // Asked for where nothing is known, or no longer true: the layout may be gone too.
      session.reopen();
      const from = await readLast();
      remember(from);
      return { sequence: from.sequence, batches: scan() };
    },

    async read(asked) {
      let left = [...asked];
      const records: (ContentRecord | undefined)[] = [];
      while (left.length > 0) {
        const wanted = left.slice(0, READ_PER_CALL);
        const args = ["{}", ...wanted.map(encodeStoredText)];
        const reply = await (await connect()).run("contentRead", keys, args);
        const [heads, columns, bodies, count] = reply as [Texts, Texts, Texts, number];
        for (const [place, key] of wanted.slice(0, count).entries())
          records.push(decodeRecord(key, heads[place], columns[place], bodies[place]));
        left = left.slice(count);
      }
      return records;
    },

    async allocate(kind, count) {
      const options = { kind: encodeStoredText(kind), count, nonce: randomUUID() };
      return Number(await (await connect()).run("contentAllocate", keys, [JSON.stringify(options)]));
    },

    async commit(writes, basis = []) {
      const nonce = randomUUID();
      const options = JSON.stringify({ nonce, maxChanges: changesKept, basis: basis.length });
      const args = [options, ...encodeCommit(writes, basis)];
      const isRemoval = writes.every(({ record }) => record === null);
      const name = isRemoval ? "contentRemove" : "contentCommit";
      const connection = await connect();
      const { reply, confirmed } = isReplicated
        ? await session.runReplicated(name, keys, args)
        : { reply: await connection.run(name, keys, args), confirmed: undefined };
      const [result, what, detail] = reply as [string, string | number, string?];
      if (result === "conflict") {
        return {
          ok: false,
          conflict: {
            key: decodeStoredText(String(what)),
            ...(detail !== undefined && { unique: decodeName(detail) }),
          },
        };
      }
      const isNext = detail !== undefined && nonces.get(Number(what) - 1) === detail;
      lastCommit = isNext ? { sequence: Number(what), nonce, changes: writes.map(toChange) } : undefined;
      if (confirmed === false) logger.warn({}, "no replica has confirmed a change of the content in time");
      return { ok: true, sequence: Number(what) };
    },

    async changes(since): Promise<ContentChanges> {
      const nonce = nonces.get(since);
      const { sequence, nonce: current } = await readLast();
      // Most often nothing has changed, and this read is all.
      if (sequence === since && current === nonce) return { sequence, changes: [] };
      // Or this store made the only change, to what the caller knows.
      if (lastCommit?.nonce === current && lastCommit.sequence === since + 1) {
        const { changes } = lastCommit;
        remember(lastCommit);
        lastCommit = undefined;
        return { sequence, changes };
      }
      /** A record that changes between two pages comes again, in its latest state. */
      const changes = new Map<string, ContentChange>();
      let seen: LastCommit = { sequence: since, nonce: nonce ?? "" };
      for (let isMore = true; isMore; ) {
        const reply = await (await connect()).run("contentChanges", keys, [
          JSON.stringify({ since: seen.sequence, nonce: seen.nonce }),
        ]);
        if (reply === "reload") return "reload";
        const [newest, of, more, ...texts] = reply as [number, string, number, ...string[]];
        for (const change of decodeChanges(texts)) changes.set(change.key, change);
        seen = { sequence: Number(newest), nonce: of };
        isMore = Number(more) === 1;
      }
      remember(seen);
      return { sequence: seen.sequence, changes: [...changes.values()] };
    },
  });
}

/** Encodes a name as part of a line, without line feeds. */
const encodeName = (name: string): string => JSON.stringify(name).slice(1, -1);

const decodeName = (encoded: string): string => JSON.parse(`"${encoded}"`) as string;

function encodeHead(version: number, { columns, unique }: NonNullable<ContentWrite["record"]>): string {
  return [`${version},${columns === null ? "n" : "r"}`, ...unique.map(encodeName)].join("\n");
}

const encodeWrite = ({ key, expectedVersion, record }: ContentWrite): readonly string[] => [
  encodeStoredText(key),
  String(expectedVersion),
  record === null ? "" : encodeHead(expectedVersion + 1, record),
  encodeStoredText(record?.columns ?? ""),
  encodeStoredText(record?.body ?? ""),
];

/**
 * Encodes a commit in two texts, however many writes it has, because Lua limits the number of
 * arguments.
 */
function encodeCommit(
  writes: readonly ContentWrite[],
  basis: readonly ContentBasis[],
): readonly [lengths: string, texts: string] {
  const texts = [
    ...basis.flatMap(({ key, version }) => [encodeStoredText(key), String(version)]),
    ...writes.flatMap(encodeWrite),
  ];
  return [texts.map((text) => Buffer.byteLength(text)).join(" "), texts.join("")];
}

/** Decodes the version, and for a record with columns a line feed and the columns. */
function decodeChange(key: string, text: string): ContentChange {
  const feed = text.indexOf("\n");
  return feed < 0
    ? { key, version: Number(text), columns: null }
    : { key, version: Number(text.slice(0, feed)), columns: decodeStoredText(text.slice(feed + 1)) };
}

/** Decodes changes from key and columns in turn. */
function decodeChanges(texts: readonly string[]): readonly ContentChange[] {
  const changes: ContentChange[] = [];
  for (let place = 0; place + 1 < texts.length; place += 2) {
    const key = decodeStoredText(texts[place] as string);
    changes.push(decodeChange(key, texts[place + 1] as string));
  }
  return changes;
}

function decodeRecord(
  key: string,
  head: string | null | undefined,
  columns: string | null | undefined,
  body: string | null | undefined,
): ContentRecord | undefined {
  if (head == null) return undefined;
  const [line = "", ...names] = head.split("\n");
  const change = columns == null ? undefined : decodeChange(key, columns);
  return {
    key,
    version: Number.parseInt(line, 10),
    columns: change?.columns ?? null,
    body: decodeStoredText(body ?? ""),
    unique: names.map(decodeName),
  };
}
