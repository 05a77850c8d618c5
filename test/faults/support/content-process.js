// Commits without pause until it is killed: in each commit a pair of records of its own with the
// number of the commit, and some that all processes fight for.
import { appendFileSync } from "node:fs";
import { systemClock } from "postbell";
import { openStorage } from "./open-storage.js";

const { storage, journal, name } = JSON.parse(process.env.CONTENT_OPTIONS ?? "{}");
const logger = { debug() {}, info() {}, warn() {}, error() {} };
const store = (await openStorage(storage)).content({ clock: systemClock, logger });

const SHARED = Array.from({ length: 12 }, (_, place) => `post/shared-${place}`);
const below = (count) => Math.floor(Math.random() * count);

const put = (key, version, body, unique = []) => ({
  key,
  expectedVersion: version,
  record: { columns: JSON.stringify({ body }), body: String(body), unique },
});

const own = [`post/${name}-left`, `post/${name}-right`];
for (;;) {
  const shared = SHARED.filter(() => below(4) === 0);
  const records = await store.read([...own, ...shared]);
  const number = Number(records[0]?.body ?? 0) + 1;
  const writes = [...own, ...shared].map((key, place) => {
    const version = records[place]?.version ?? 0;
    if (place < own.length) return put(key, version, number, [`${key}/${number}`]);
    if (version > 0 && below(3) === 0) return { key, expectedVersion: version, record: null };
    return put(key, version, number, [`name-${below(30)}`]);
  });
  try {
    const { ok } = await store.commit(writes);
    // Written before whatever comes next, so that it is there also where that is the end.
    if (ok) appendFileSync(journal, `${number}\n`);
  } catch {
    // The storage is unavailable for a moment; the result of the commit is read again.
  }
}
