// Writes to a SQLite file, reads and settles as fast as it can, opening the file again and again.
// Reports every error that a caller would see.
import { randomUUID } from "node:crypto";
import { systemClock } from "postbell";
import { openStorage } from "./open-storage.js";

const { storage: address, rounds, calls, name } = JSON.parse(process.env.STORM_OPTIONS ?? "{}");
const logger = { debug() {}, info() {}, warn() {}, error() {} };
const errors = [];
const stored = [];

const note = (error) => void errors.push(`${error.code}: ${error.message}`);

async function run(store, content, call) {
  const now = store.now();
  const id = randomUUID();
  const event = { id, account: "clinic", type: "patient.updated", digest: id, payload: "{}" };
  await store.append({ events: [event], rememberMs: 86_400_000, now });
  stored.push(id);
  const record = { columns: "{}", body: id, unique: [`slug/${id}`] };
  await content.commit([{ key: `post/${name}-${id}`, expectedVersion: 0, record }]);
  await Promise.all([store.stats(), content.read([`post/${name}-${id}`])]);
  if (call % 3 === 0) {
    const room = { fast: 10, slow: 10 };
    await store.claim({ now, token: `${name}.${id}`, leaseUntil: now, room });
  }
}

for (let round = 0; round < rounds; round++) {
  const storage = await openStorage(address);
  const store = storage.webhooks({
    ...{ clock: systemClock, logger, perEndpoint: 5 },
    retention: { keepMs: 3_600_000, events: 100_000 },
  });
  const content = storage.content({ clock: systemClock, logger });
  await Promise.all(Array.from({ length: calls }, (_, call) => run(store, content, call).catch(note)));
  await storage.close();
}
process.send({ errors, stored: stored.length });
process.disconnect();
