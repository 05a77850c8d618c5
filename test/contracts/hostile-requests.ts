/**
 * Random requests of a subscriber to every route of the registration API, with values that fit and
 * values that are meant to break something. The seed is told when a run fails;
 * `FUZZ_SEED` repeats it, `FUZZ_REQUESTS` makes it longer.
 */

import { randomInt } from "node:crypto";
import { expect, it } from "vitest";
import type { Json, JsonObject } from "../../src/schema/types.js";
import type { Storage } from "../../src/webhooks/store.js";
import { stopComparing } from "../support/compared-service.js";
import { type Chance, chanceOf, hostileText, hostileValue, queryText } from "../support/hostile.js";
import { type Api, registrationApi, URL_1 } from "../support/registration-api.js";

// Hardly any of these requests is described in the document.
stopComparing();

const REQUESTS = Number(process.env["FUZZ_REQUESTS"] ?? 1_000);
const SEED = Number(process.env["FUZZ_SEED"] ?? randomInt(2 ** 31));

interface Operation {
  readonly method: string;
  readonly path: string;
  readonly parameters: readonly string[];
  readonly fields: readonly string[];
}

const object = (value: unknown): JsonObject => (value ?? {}) as JsonObject;

function readOperations(document: JsonObject): readonly Operation[] {
  return Object.entries(object(document["paths"])).flatMap(([path, item]) =>
    Object.entries(object(item))
      .filter(([method]) => method !== "parameters")
      .map(([method, operation]) => {
        const { parameters = [], requestBody } = object(operation);
        const content = object(object(requestBody)["content"]);
        const schema = object(object(content["application/json"])["schema"]);
        return {
          method: method.toUpperCase(),
          path,
          parameters: (parameters as { name: string }[]).map(({ name }) => name),
          fields: Object.keys(object(schema["properties"])),
        };
      }),
  );
}

const WORDS: readonly Json[] = [
  ...["patient.updated", "patient.*", "*", "ENABLED", "DISABLED", "failed", "pending", "missed", "body"],
  ...["2026-02-28T12:00:00Z", "2026-03-01T11:00:00+01:00", URL_1, "none", 0, 1, 100, true],
];

/** Often one that may be right, so that requests get past the first checks. */
const anyValue = (chance: Chance, ids: readonly string[]): Json => {
  if (chance.once(2)) return chance.pick([...WORDS, ...ids]);
  return chance.once(3) ? hostileValue(chance) : hostileText(chance);
};

const textOf = (value: Json): string => (typeof value === "string" ? value : JSON.stringify(value));

const segmentOf = (chance: Chance, ids: readonly string[]): string => {
  if (!chance.once(3)) return chance.pick(ids);
  return encodeURIComponent(hostileText(chance).toWellFormed()) || "%";
};

const headerText = (chance: Chance): string => hostileText(chance).replace(/[^\t\x20-\x7e\x80-\xff]/g, "?");

async function sendOne(
  api: Api,
  chance: Chance,
  { operation, ids }: { operation: Operation; ids: readonly string[] },
) {
  const { method, path, parameters, fields } = operation;
  const some = (names: readonly string[]): JsonObject =>
    Object.fromEntries(names.filter(() => chance.once(2)).map((name) => [name, anyValue(chance, ids)]));
  const headers: Record<string, string> = {};
  if (chance.once(4)) headers["idempotency-key"] = headerText(chance);
  if (chance.once(4)) headers["if-none-match"] = headerText(chance);
  if (chance.once(10)) headers["content-type"] = headerText(chance);
  if (chance.once(10)) headers["authorization"] = headerText(chance);
  const hasBody = method === "POST" || method === "PUT";
  const json = chance.once(5)
    ? hostileValue(chance)
    : { ...some(fields), ...(chance.once(3) && { url: URL_1 }) };
  const sent = {
    path: path.replace(/\{\w+\}/g, () => segmentOf(chance, ids)),
    query: queryText(
      Object.fromEntries(Object.entries(some(parameters)).map(([key, value]) => [key, textOf(value)])),
    ),
    headers,
    ...(hasBody && { json }),
  };
  return { sent: { method, ...sent }, answer: await api.call(method, sent.path, sent) };
}

/** The ids of a webhook, of an event, and of its deliveries. */
async function createIds(api: Api): Promise<readonly string[]> {
  const { webhook } = await api.create();
  const resource = { resourceType: "Patient", id: "1" };
  const { id, deliveries } = await api.webhooks.emit({ type: "patient.updated", account: "acme", resource });
  return [webhook.id, id, ...deliveries.slice(-2).map((delivery) => delivery.id)];
}

/** No value that a subscriber sends may look like a failure of the service. */
export function hostileRequestsContract(open: () => Promise<Storage> | Storage): void {
  it(`requests of a subscriber get no 5xx and leave no error in the log, whatever they hold (seed ${SEED})`, async () => {
    const chance = chanceOf(SEED);
    const limits = { webhooks: 10_000, enabledWebhooks: 10_000, requestsPerMinute: 0 };
    const api = registrationApi({ storage: await open(), limits });
    const operations = readOperations(api.webhooks.openApi());
    let ids: readonly string[] = [];
    const statuses = new Set<number>();
    for (let count = 0; count < REQUESTS; count++) {
      // The requests delete and disable webhooks, too.
      if (count % 50 === 0) ids = await createIds(api);
      const { sent, answer } = await sendOne(api, chance, { operation: chance.pick(operations), ids });
      statuses.add(answer.status);
      const errors = api.log.filter(({ level }) => level === "error");
      expect({ sent, status: answer.status < 500 ? "below 500" : answer, errors }).toEqual({
        sent,
        status: "below 500",
        errors: [],
      });
    }
    expect([...statuses]).toEqual(expect.arrayContaining([200, 400, 401, 404]));
    await api.webhooks.stop();
  });
}
