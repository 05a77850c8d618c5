import { createServer } from "node:http";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { nodeAdapter } from "../../../adapters/node.js";
import type { JsonObject } from "../../../src/schema/types.js";
import type { RunningHost } from "../../contracts/adapter.js";
import { contentSite, credentials, type Role } from "../../support/content-site.js";
import { listen } from "../../support/hosts.js";
import { send } from "../../support/http-client.js";

const BASES = ["categories", "tags", "menus", "wp_pattern_category"] as const;

let host: RunningHost;
beforeAll(async () => {
  host = await listen(createServer(nodeAdapter(contentSite())));
});
afterAll(() => host.close());

interface BatchResponse {
  readonly status: number;
  readonly body: { readonly id: number; readonly code?: string; readonly name?: string };
}

async function batch(requests: readonly JsonObject[], as?: Role): Promise<readonly BatchResponse[]> {
  const reply = await send(host.origin, "/batch/v1", {
    method: "POST",
    headers: {
      "content-type": "application/json",
      ...(as === undefined ? {} : { authorization: credentials(as) }),
    },
    body: JSON.stringify({ requests }),
  });
  expect(reply.status).toBe(207);
  return (reply.json as { responses: BatchResponse[] }).responses;
}

const outcomes = (responses: readonly BatchResponse[]): string[] =>
  responses.map(({ status, body }) => (body.code === undefined ? `${status}` : `${status} ${body.code}`));

describe.each(BASES)("terms of /%s in a batch", (base) => {
  const path = `/core/v2/${base}`;

  it("are created, updated with every method and deleted", async () => {
    const created = await batch(
      [
        { path, body: { name: "One" } },
        { method: "POST", path, body: { name: "Two" } },
        { path, body: { name: "One" } },
        { path, body: {} },
      ],
      "administrator",
    );
    const taken = base === "menus" ? "400 menu_exists" : "400 term_exists";
    expect(outcomes(created)).toEqual(["201", "201", taken, "400 rest_missing_callback_param"]);
    const ids = created.slice(0, 2).map(({ body }) => body.id);

    const updated = await batch(
      [
        { method: "POST", path: `${path}/${ids[0]}`, body: { name: "Posted" } },
        { method: "PUT", path: `${path}/${ids[1]}`, body: { name: "Put" } },
        { method: "PATCH", path: `${path}/${ids[1]}?name=Patched` },
      ],
      "administrator",
    );
    expect(updated.map(({ body }) => body.name)).toEqual(["Posted", "Put", "Patched"]);

    const deleted = await batch(
      [
        { method: "DELETE", path: `${path}/${ids[0]}` },
        { method: "DELETE", path: `${path}/${ids[0]}?force=true` },
        { method: "DELETE", path: `${path}/${ids[1]}`, body: { force: true } },
        { method: "DELETE", path: `${path}/${ids[1]}?force=true` },
      ],
      "administrator",
    );
    expect(outcomes(deleted)).toEqual([
      "501 rest_trash_not_supported",
      "200",
      "200",
      "404 rest_term_invalid",
    ]);
  });

  it.each(["subscriber", undefined] as const)("are refused for a caller who is %s", async (role) => {
    const status = role === undefined ? 401 : 403;
    expect(outcomes(await batch([{ path, body: { name: "Mine" } }], role))).toEqual([
      `${status} rest_cannot_create`,
    ]);
  });

  it("are announced by OPTIONS for every method", async () => {
    for (const described of [path, `${path}/1`]) {
      const { endpoints } = (await send(host.origin, described, { method: "OPTIONS" })).json as {
        endpoints: { allow_batch?: unknown }[];
      };
      expect(endpoints.map(({ allow_batch }) => allow_batch)).toEqual(endpoints.map(() => ({ v1: true })));
    }
  });
});

it("a batch may use the same routes as in WordPress", async () => {
  const { routes } = (await send(host.origin, "/")).json as {
    routes: Record<string, { endpoints: { allow_batch?: unknown }[] }>;
  };
  const ITEM = "/(?P<id>[\\d]+)";
  const allowed = Object.keys(routes).filter((path) =>
    routes[path]?.endpoints.every(({ allow_batch }) => allow_batch !== undefined),
  );
  const bases = ["posts", "pages", "menu-items", "blocks", ...BASES, "users"];
  const items = bases.flatMap((base) => [`/core/v2/${base}`, `/core/v2/${base}${ITEM}`]);
  expect(allowed).toEqual(expect.arrayContaining(items));
  expect(allowed.filter((path) => path.startsWith("/core/v2/media"))).toEqual([]);
});
