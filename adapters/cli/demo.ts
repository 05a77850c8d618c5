/**
 * `postbell demo`: a host, its portal and two subscribers in one process, to look at before one
 * writes code.
 */

import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import {
  type CliIo,
  createPainter,
  defineCommand,
  readWholeNumber,
  refuseOperands,
  waitForEnd,
} from "./command.js";

const HOST = "127.0.0.1";
const EVENT_EVERY_MS = 5_000;
const SUBSCRIBER = { id: "demo", account: "shop-7" };

const EVENTS = {
  "order.paid": {
    description: "An order was paid in full.",
    schema: {
      type: "object",
      properties: { order: { type: "string" }, total: { type: "integer", minimum: 0 } },
      required: ["order", "total"],
    },
    example: { order: "A-1", total: 4200 },
  },
} as const;

export const demo = defineCommand({
  usage: "demo [--port PORT]",
  summary: "run a host, its portal and two subscribers in this process, to see what they do",
  details: `An order is paid every five seconds. The endpoint /orders receives the event. The endpoint /warehouse
fails until you press Enter; then send from the portal what it missed. The demo listens on ${HOST}
and stores everything in memory.

  --port PORT         default 3000; 0 selects any free port`,
  options: { port: { type: "string", default: "3000" } },
  read({ port }, operands) {
    refuseOperands(operands);
    return { port: readWholeNumber(port, "--port", { min: 0, max: 65_535 }) };
  },
  async run({ port }, io) {
    const server = createServer();
    const origin = await listenOn(server, port);
    const { webhooks, handle, repair } = await createDemo(origin, io);
    server.on("request", handle);
    io.stdout.write(
      `The portal:  ${origin}/portal/\n\n` +
        "Open it: /warehouse fails. Press Enter here to repair it, then choose Send now in the portal. Ctrl+C ends the demo.\n\n",
    );
    const stop = new AbortController();
    try {
      void repairOnEnter(io, repair);
      const ended = waitForEnd(io);
      return await Promise.race([ended, payOrders(webhooks, stop.signal)]);
    } finally {
      stop.abort();
      await webhooks.stop({ graceMs: 0 });
      server.close();
      server.closeAllConnections();
    }
  },
});

async function listenOn(server: Server, port: number): Promise<string> {
  await new Promise<void>((resolve, reject) => {
    server.once("error", (error: NodeJS.ErrnoException) =>
      reject(
        error.code === "EADDRINUSE"
          ? new Error(`Port ${port} is in use: choose another with --port, or any free one with --port 0.`)
          : error,
      ),
    );
    server.listen(port, HOST, resolve);
  });
  return `http://${HOST}:${(server.address() as AddressInfo).port}`;
}

/** Loads the service only here, so that the other commands start without it. */
async function createDemo(origin: string, io: CliIo) {
  const [{ createWebhooks }, { createPortal }, { createReceiver }, { nodeAdapter }, { memoryStorage }] =
    await Promise.all([
      import("../../src/index.js"),
      import("../../src/portal/index.js"),
      import("../../src/receiver/index.js"),
      import("../node.js"),
      import("../../storage/memory/index.js"),
    ]);
  const paint = createPainter(io);
  const webhooks = createWebhooks({
    storage: memoryStorage(),
    events: EVENTS,
    access: { authenticate: () => null, canRead: () => true },
    destinations: { allowHttp: true, allowPrivateNetworks: true },
    delivery: { excerptCharacters: 200 },
    limits: { auditEntries: 1_000 },
    logger: false,
  });
  await webhooks.start();
  const portal = nodeAdapter(
    createPortal({
      webhooks,
      title: "Postbell demo",
      authorize: () => ({ name: "You", subscriber: SUBSCRIBER, canReadRecords: true }),
    }),
    { prefix: "/portal" },
  );

  const receive = async (path: string): Promise<RequestListener> => {
    const { secret } = await webhooks.registrations.create({
      subscriber: SUBSCRIBER,
      url: `${origin}${path}`,
    });
    const receiver = createReceiver({
      secrets: secret,
      body: "plain",
      path,
      onEvent: ({ type, data }) => {
        io.stdout.write(
          `${paint("green", "verified")}  ${path.padEnd(10)}  ${type}  ${JSON.stringify(data)}\n`,
        );
      },
    });
    return nodeAdapter(receiver);
  };
  const orders = await receive("/orders");
  const warehouse = await receive("/warehouse");
  let isRepaired = false;

  const host = origin.slice("http://".length);
  const handle: RequestListener = (request, response) => {
    const [path = "/"] = (request.url ?? "/").split("?", 1);
    // A page of another site that resolves its own name to this machine gets nothing.
    if (request.headers.host !== host) response.writeHead(421).end();
    else if (path === "/portal" || path.startsWith("/portal/")) portal(request, response);
    else if (path === "/orders") orders(request, response);
    else if (path === "/warehouse" && isRepaired) warehouse(request, response);
    else if (path === "/warehouse") {
      io.stdout.write(`${paint("red", "failed")}    /warehouse  responds 503\n`);
      response.writeHead(503, { "content-type": "text/plain" }).end("The warehouse's database is full.\n");
    } else response.writeHead(302, { location: "/portal/" }).end();
  };
  const repair = (): void => {
    if (!isRepaired)
      io.stdout.write("/warehouse is repaired. Choose Send now in the portal to send what it missed.\n");
    isRepaired = true;
  };
  return { webhooks, handle, repair };
}

async function repairOnEnter({ stdin }: CliIo, repair: () => void): Promise<void> {
  for await (const chunk of stdin) if (chunk.includes(10)) return repair();
}

/** Emits until `signal` is aborted. Rejects if an event cannot be stored. */
async function payOrders(
  webhooks: { emit(event: { type: "order.paid"; account: string; data: unknown }): Promise<unknown> },
  signal: AbortSignal,
): Promise<never> {
  for (let number = 1001; ; number++) {
    const data = { order: `A-${number}`, total: 1_900 + ((number * 735) % 9_000) };
    await webhooks.emit({ type: "order.paid", account: SUBSCRIBER.account, data });
    await sleep(EVENT_EVERY_MS, undefined, { signal });
  }
}
