/**
 * Plays the recorded cases of the conformance suite. Each response is compared with the document,
 * as in every test; here, each request that succeeded is as well.
 */

import { readdirSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { buffer } from "node:stream/consumers";
import { expect, it } from "vitest";
import { nodeAdapter } from "../../../adapters/node.js";
import { sharpImages } from "../../../adapters/sharp/index.js";
import type { HttpRequest, Service } from "../../../src/http/types.js";
import type { JsonObject } from "../../../src/schema/types.js";
import { memoryFiles } from "../../../storage/files/index.js";
import { playCase } from "../../conformance/play.js";
import { contentSite, credentials, idOf, ROLES } from "../../support/content-site.js";
import { undescribedArguments } from "../../support/described-requests.js";
import { listen } from "../../support/hosts.js";

const CONFORMANCE = new URL("../../conformance/", import.meta.url);
const read = (name: string): unknown => JSON.parse(readFileSync(new URL(name, CONFORMANCE), "utf8"));

interface RecordedCase {
  readonly id: string;
  readonly steps: readonly { readonly wait?: number }[];
}

const cases = readdirSync(new URL("cases", CONFORMANCE)).flatMap(
  (name) => read(`cases/${name}`) as readonly RecordedCase[],
);

/** The cases wait so that dates differ, which matters to none of the comparisons here. */
const withoutWaiting = ({ steps, ...rest }: RecordedCase): RecordedCase => ({
  ...rest,
  steps: steps.map((step) => ({ ...step, wait: 0 })),
});

/**
 * Arguments that the service accepts although the document does not offer them: a generated client
 * does not need them.
 */
const NOT_OFFERED: { readonly [reason: string]: RegExp } = {
  "Like WordPress, ignores a text that is neither a string nor an object.":
    /: (?:title|content|excerpt)=(?:\d+|true)$/,
  "Like WordPress, reads a number in `raw`.": /: title=\{"raw":\d+\}$/,
  "A post in the trash may be saved with the status that it has.": /\{id\}: status="trash"$/,
  "Like WordPress, takes any unknown format for JSON.": /\/oembed\/1\.0\/embed: format="\w*"$/,
  "A list in the place of an object has its indices as names.": /requests=\[.*"body":\[/,
};

it("allows every argument of the recorded requests that succeeded", async () => {
  const differences = new Set<string>();
  let succeeded = 0;
  const content = contentSite({
    files: memoryFiles(),
    images: sharpImages(),
    unknownPaths: "answer",
    users: ROLES.map((role) => {
      const name = role === "administrator" ? "admin" : role;
      return { id: idOf(role), slug: name, name, roles: [role] };
    }),
  });
  const find = undescribedArguments(content.openApi() as JsonObject);
  const recording: Service = {
    async handle(request: HttpRequest) {
      const bytes =
        request.body === null ? Buffer.alloc(0) : await buffer(request.body as AsyncIterable<Uint8Array>);
      const response = await content.handle({ ...request, body: request.body === null ? null : bytes });
      if (response !== undefined && response.status < 300 && request.method !== "OPTIONS") {
        succeeded += 1;
        for (const difference of await find({ ...request, body: bytes })) differences.add(difference);
      }
      return response;
    },
  };
  const host = await listen(createServer(nodeAdapter(recording, { prefix: "/wp-json" })));
  const auth = Object.fromEntries(
    ROLES.map((role) => [
      role === "administrator" ? "admin" : role,
      { headers: { Authorization: credentials(role) } },
    ]),
  );
  const target = { base: `${host.origin}/wp-json`, site: host.origin, namespace: "core/v2", auth };
  const fixtures = read("fixtures.json");
  for (const one of cases) await playCase(withoutWaiting(one), target, fixtures);
  await host.close();
  const reasons = Object.entries(NOT_OFFERED);
  const unexplained = [...differences].filter((one) => !reasons.some(([, pattern]) => pattern.test(one)));
  expect(unexplained.sort()).toEqual([]);
  const unused = reasons.filter(([, pattern]) => ![...differences].some((one) => pattern.test(one)));
  expect(unused).toEqual([]);
  expect(succeeded).toBeGreaterThan(cases.length);
});
