/** A service may pass a copy of its request on, and the copy must know when the client leaves. */

import { once } from "node:events";
import { createServer, request as startRequest } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { nodeAdapter } from "../../adapters/node.js";
import type { HttpRequest, Service } from "../../src/http/types.js";

let server: ReturnType<typeof createServer> | undefined;

afterEach(() => {
  server?.closeAllConnections();
  server?.close();
});

/** Starts a server and returns its port. */
async function listen(service: Service): Promise<number> {
  server = createServer(nodeAdapter(service));
  await once(server.listen(0, "127.0.0.1"), "listening");
  return (server.address() as AddressInfo).port;
}

describe("a copy of a request", () => {
  it("has a signal that aborts when the client leaves", async () => {
    const calls: HttpRequest[] = [];
    const arrived = new EventTarget();
    const port = await listen({
      handle(request) {
        calls.push({ ...request });
        arrived.dispatchEvent(new Event("call"));
        return new Promise(() => {});
      },
    });
    const client = startRequest({ port, host: "127.0.0.1" });
    client.on("error", () => {});
    const called = once(arrived, "call");
    client.end();
    await called;
    const signal = calls[0]?.signal;
    expect(signal).toBeInstanceOf(AbortSignal);
    client.destroy();
    if (signal?.aborted === false) await once(signal, "abort");
    expect(signal?.aborted).toBe(true);
  });

  it("shares its signal with the request", async () => {
    const shared: boolean[] = [];
    const port = await listen({
      async handle(request) {
        const copy = { ...request };
        shared.push(copy.signal === request.signal);
        return { status: 204, headers: {}, body: null };
      },
    });
    await fetch(`http://127.0.0.1:${port}/`);
    expect(shared).toEqual([true]);
  });
});
