/**
 * Requests to a content service over a real socket, as somebody in a role. Each response is
 * compared with the OpenAPI document of the service.
 */

import { createServer } from "node:http";
import { expect, onTestFinished } from "vitest";
import { nodeAdapter } from "../../adapters/node.js";
import type { Content } from "../../src/content/service.js";
import type { JsonObject } from "../../src/schema/types.js";
import { credentials, ROLES, type Role } from "./content-site.js";
import { describedBy } from "./described-answers.js";
import { listen } from "./hosts.js";
import { type Reply, send } from "./http-client.js";

/** Everybody who may call: nobody in particular, and one user in each role. */
export const CALLERS = [undefined, ...ROLES.toReversed()] as const;

export interface SocketAnswer {
  readonly status: number;
  readonly headers: Reply["headers"];
  readonly body: ReturnType<typeof JSON.parse>;
}

export type SocketCall = (
  request: string,
  options?: { readonly as?: Role | undefined; readonly body?: JsonObject },
) => Promise<SocketAnswer>;

export interface SocketSite {
  /** `call("PUT /settings?_fields=title", { as: "editor", body })`, below the content namespace. */
  readonly call: SocketCall;
  readonly origin: string;
}

/** Serves `content` until the test ends. */
export async function serveContent(content: Content): Promise<SocketSite> {
  const host = await listen(createServer(nodeAdapter(content)));
  const { origin } = host;
  onTestFinished(() => host.close());
  const { problems } = describedBy(content.openApi({ baseUrl: origin }));
  const call: SocketCall = async (request, { as, body } = {}) => {
    const [method = "", target = ""] = request.split(" ");
    const path = `/${content.namespace}${target}`;
    const sent = body === undefined ? undefined : JSON.stringify(body);
    const headers = {
      ...(as === undefined ? {} : { authorization: credentials(as) }),
      ...(sent === undefined ? {} : { "content-type": "application/json" }),
    };
    const reply = await send(origin, path, {
      method,
      headers,
      ...(sent === undefined ? {} : { body: sent }),
    });
    const [plain = "", query = ""] = path.split("?");
    const asked = {
      ...{ method, path: plain, query, headers, baseUrl: origin },
      body: sent === undefined ? null : Buffer.from(sent),
    };
    const isEmpty = reply.text === "";
    const { connection: _, date: __, "keep-alive": ___, "transfer-encoding": ____, ...told } = reply.headers;
    const answer = {
      status: reply.status,
      headers: told as Record<string, string>,
      body: isEmpty ? null : reply.text,
    };
    expect(problems(asked, answer), request).toEqual([]);
    return { status: reply.status, headers: reply.headers, body: isEmpty ? null : reply.json };
  };
  return { call, origin };
}
