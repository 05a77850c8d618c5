import { createServer } from "node:http";
import { afterEach, describe, expect, it } from "vitest";
import { nodeAdapter } from "../../adapters/node.js";
import type { ContentOptions } from "../../src/content/options.js";
import { memoryFiles } from "../../storage/files/index.js";
import type { RunningHost } from "../contracts/adapter.js";
import { callsOf } from "../support/content-call.js";
import { contentSite } from "../support/content-site.js";
import { listen } from "../support/hosts.js";
import { dial, json, type Reply, type Sent, send, untilClosed } from "../support/http-client.js";

const ORIGIN = "https://editor.example.org";
const STALE = { status: 403, code: "rest_cookie_invalid_nonce", message: "Cookie check failed" };

interface Host extends RunningHost {
  readonly site: ReturnType<typeof contentSite>;
  readonly logged: readonly { readonly fields: object; readonly message: string }[];
  /** The nonce that the host accepts. */
  nonce: string;
}

const hosts: RunningHost[] = [];
afterEach(async () => {
  await Promise.all(hosts.splice(0).map((host) => host.close()));
});

/** The administrator signs in with a nonce; a request without one is anonymous. */
async function hostWith(options: Partial<ContentOptions> = {}): Promise<Host> {
  const logged: { fields: object; message: string }[] = [];
  const log = (fields: object, message: string): void => void logged.push({ fields, message });
  const site = contentSite({
    files: memoryFiles(),
    cors: { origins: [ORIGIN] },
    logger: { debug: log, info: log, warn: log, error: log },
    authenticate: ({ headers }) => {
      const nonce = headers["x-wp-nonce"];
      if (nonce === undefined) return null;
      return nonce === host.nonce ? { id: 1 } : STALE;
    },
    ...options,
  });
  const running = await listen(createServer(nodeAdapter(site)));
  const host: Host = { ...running, site, logged, nonce: "fresh" };
  hosts.push(host);
  return host;
}

const withNonce = (nonce: string, sent: Sent = {}): Sent => ({
  ...sent,
  headers: { origin: ORIGIN, "x-wp-nonce": nonce, ...sent.headers },
});

const codeOf = ({ status, json: body }: Reply): string => `${status} ${(body as { code?: string }).code}`;

describe("a refusal by authenticate", () => {
  it("is WordPress's error, which a page of a listed origin can read", async () => {
    const host = await hostWith();
    for (const [path, sent] of [
      ["/core/v2/posts", {}],
      ["/core/v2/posts", { method: "OPTIONS" }],
      ["/core/v2/posts", json({ title: "Lost?" })],
      ["/core/v2/posts/1", { method: "DELETE" }],
      ["/batch/v1", json({ requests: [{ path: "/core/v2/posts", body: { title: "Lost?" } }] })],
      ["/", {}],
    ] as const) {
      const reply = await send(host.origin, path, withNonce("stale", sent));
      expect(reply.status).toBe(403);
      expect(reply.json).toEqual({
        code: "rest_cookie_invalid_nonce",
        message: "Cookie check failed",
        data: { status: 403 },
      });
      expect(reply.headers).toMatchObject({
        "access-control-allow-origin": ORIGIN,
        "access-control-allow-credentials": "true",
        "cache-control": expect.stringContaining("no-store"),
      });
    }
    expect(host.logged).toEqual([]);
    const { body } = await callsOf(host.site)("GET /posts", {
      as: "administrator",
      query: { status: "any" },
    });
    expect(body).toEqual([]);
  });

  it("is neither served from the cache nor stored in it", async () => {
    const host = await hostWith();
    const read = (sent: Sent = {}): Promise<Reply> => send(host.origin, "/core/v2/posts", sent);
    expect(codeOf(await read(withNonce("stale")))).toBe("403 rest_cookie_invalid_nonce");
    const cached = await read({ headers: { origin: ORIGIN } });
    expect(cached.status).toBe(200);
    const etag = cached.headers.etag as string;
    const conditional = { headers: { "if-none-match": etag } };
    expect(codeOf(await read(withNonce("stale", conditional)))).toBe("403 rest_cookie_invalid_nonce");
    expect((await read({ headers: { origin: ORIGIN } })).status).toBe(200);
  });

  it("leaves the file of an upload unread and closes its connection", async () => {
    const host = await hostWith();
    const socket = await dial(host.origin);
    socket.write(
      [
        "POST /core/v2/media HTTP/1.1",
        "host: localhost",
        "x-wp-nonce: stale",
        "content-type: image/png",
        "content-disposition: attachment; filename=a.png",
        "content-length: 1000000",
        "",
        "the first bytes",
      ].join("\r\n"),
    );
    const response = await untilClosed(socket);
    expect(response).toMatch(/^HTTP\/1\.1 403 /);
    expect(response.toLowerCase()).toContain("connection: close");
    expect(response).toContain("rest_cookie_invalid_nonce");
  });

  it("lets a client renew its nonce and repeat the request", async () => {
    const host = await hostWith();
    // As WordPress's apiFetch does: on this code it asks the host for a nonce, once.
    const save = async (title: string): Promise<Reply> => {
      const first = await send(host.origin, "/core/v2/posts", withNonce("yesterday's", json({ title })));
      return codeOf(first) === "403 rest_cookie_invalid_nonce"
        ? send(host.origin, "/core/v2/posts", withNonce(host.nonce, json({ title })))
        : first;
    };
    const saved = await save("Kept");
    expect(saved.status).toBe(201);
    expect(saved.json).toMatchObject({ title: { raw: "Kept" } });
  });

  it.each([
    { status: 402, code: "a", message: "b" },
    { status: 499, code: "x".repeat(100), message: "m".repeat(1000) },
    { status: 423, code: "account_locked", message: "This account is locked.", detail: "internal" },
  ])("may have the host's own status, code and message: $status", async (refusal) => {
    const host = await hostWith({ authenticate: async () => refusal });
    const { status, code, message } = refusal;
    const reply = await send(host.origin, "/core/v2/posts");
    expect([reply.status, reply.json]).toEqual([status, { code, message, data: { status } }]);
  });

  it.each([
    [{ ...STALE, status: 399 }, "status must be a whole number from 400 to 499 (got 399)"],
    [{ ...STALE, status: 500 }, "status must be a whole number from 400 to 499 (got 500)"],
    [{ ...STALE, status: 403.5 }, "status must be a whole number from 400 to 499 (got 403.5)"],
    [
      { ...STALE, status: "s3cret" },
      "status must be a whole number from 400 to 499 (got a value of type string)",
    ],
    [{ ...STALE, code: "" }, "code must be a text of 1 to 100 characters"],
    [{ ...STALE, code: "s3cret".repeat(20) }, "code must be a text of 1 to 100 characters"],
    [{ ...STALE, message: "s3cret".repeat(200) }, "message must be a text of 1 to 1000 characters"],
    [{ status: 403, code: "a" }, "message must be a text of 1 to 1000 characters"],
    [{}, "status must be a whole number from 400 to 499 (got a value of type undefined)"],
    ["s3cret", "got a value of type string"],
    [true, "got a value of type boolean"],
  ])("that is invalid is the host's mistake, which only the log shows: %j", async (returned, problem) => {
    const host = await hostWith({ authenticate: (async () => returned) as never });
    for (const sent of [{}, json({ title: "a" })]) {
      const reply = await send(host.origin, "/core/v2/posts", sent);
      expect(codeOf(reply)).toBe("500 rest_internal_error");
      expect(reply.text).not.toContain("s3cret");
    }
    const entry = {
      fields: { problem },
      message: "authenticate returned neither a user nor a valid refusal",
    };
    expect(host.logged).toEqual([entry, entry]);
  });

  it("takes a user for a user, whatever other members he has", async () => {
    const host = await hostWith({ authenticate: () => ({ id: 1, status: 403, code: "a", message: "b" }) });
    expect((await send(host.origin, "/core/v2/users/me")).json).toMatchObject({ id: 1 });
  });
});
