/** Requests to a content service over a real connection, as somebody in a role or anonymous. */

import { createServer } from "node:http";
import { nodeAdapter } from "../../adapters/node.js";
import { contentSite, credentials, ROLES, type Role } from "./content-site.js";
import { listen } from "./hosts.js";
import { send } from "./http-client.js";

export type SocketRole = Role | "anonymous";

const SIX_ROLES: readonly SocketRole[] = [
  "anonymous",
  "subscriber",
  "contributor",
  "author",
  "editor",
  "administrator",
];

export interface SocketAnswer {
  readonly status: number;
  readonly headers: { readonly [name: string]: string | string[] | undefined };
  /** `undefined` for an empty body. */
  readonly body: ReturnType<typeof JSON.parse>;
}

export interface SocketSite {
  readonly site: ReturnType<typeof contentSite>;
  /** The origin of the server. */
  readonly origin: string;
  /** `call("POST /core/v2/posts", "editor", { title: "A" })` */
  readonly call: (request: string, as?: SocketRole, body?: unknown) => Promise<SocketAnswer>;
  /** Returns what each role receives, as `status` or `status code`. */
  readonly inEachRole: (request: string, body?: unknown) => Promise<{ readonly [role: string]: string }>;
  readonly close: () => Promise<void>;
}

export async function socketSite(
  options: Parameters<typeof contentSite>[0] | ReturnType<typeof contentSite> = {},
): Promise<SocketSite> {
  const site = "handle" in options ? options : contentSite(options);
  const host = await listen(createServer(nodeAdapter(site)));
  const { origin } = host;
  const call: SocketSite["call"] = async (request, as = "anonymous", body) => {
    const [method = "", path = ""] = request.split(" ");
    const headers = {
      ...(ROLES.some((role) => role === as) ? { authorization: credentials(as as Role) } : {}),
      ...(body === undefined ? {} : { "content-type": "application/json" }),
    };
    const sent = { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) };
    const reply = await send(origin, path, sent);
    return {
      status: reply.status,
      headers: reply.headers,
      body: reply.text === "" ? undefined : JSON.parse(reply.text),
    };
  };
  return {
    site,
    origin,
    call,
    async inEachRole(request, body) {
      const seen: { [role: string]: string } = {};
      for (const role of SIX_ROLES) {
        const { status, body: answer } = await call(request, role, body);
        seen[role] = status < 400 ? String(status) : `${status} ${answer?.code ?? ""}`.trim();
      }
      return seen;
    },
    close: async () => {
      await host.close();
      await site.stop();
    },
  };
}

/** The same for every role but anonymous and those in `others`. */
export const seenBy = (
  everybody: string,
  others: { readonly [role in SocketRole]?: string } = {},
): { readonly [role: string]: string } =>
  Object.fromEntries(SIX_ROLES.map((role) => [role, others[role] ?? everybody]));
