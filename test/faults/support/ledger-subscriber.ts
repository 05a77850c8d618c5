/**
 * The endpoints' side of the ledger: an HTTPS server that verifies each request and notes what it
 * answered to it.
 */

import { createHmac } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";
import { createSecureContext } from "node:tls";
import { onTestFinished } from "vitest";
import { issue, makeAuthority } from "../../support/certificates.js";

/** A request that was read to its end. */
export interface Received {
  /** Identifies a delivery by its webhook and its event. */
  readonly id: string;
  readonly eventId: string;
  readonly webhookId: string;
  readonly path: string;
  readonly at: number;
  /** How many came for this delivery before. */
  readonly earlier: number;
  readonly isSigned: boolean;
  /** The response of the endpoint; `null` until it has responded. */
  status: number | null;
}

export interface SubscriberOptions {
  /** A status, now or later. Default: 204. */
  readonly answer?: ((request: Received) => number | Promise<number>) | undefined;
  /**
   * Called when a connection is there and nothing has been sent on it but the first words of TLS.
   */
  readonly onHello?: (() => void) | undefined;
  /** Called with the first bytes of a body, before any more are read. */
  readonly onBody?: (() => void) | undefined;
}

export interface Subscriber {
  /** Of the authority to trust. */
  readonly ca: string;
  readonly url: (path: string) => string;
  /** Makes known what a webhook signs with; requests of others count as unsigned. */
  readonly trust: (webhookId: string, secret: string) => void;
  readonly received: readonly Received[];
  /** Requests that broke off before their end. */
  readonly cutOff: () => number;
  readonly respond: (answer: NonNullable<SubscriberOptions["answer"]>) => void;
}

const HOST = "subscriber.test";

function isSigned(header: string | string[] | undefined, secret: string | undefined, body: Buffer): boolean {
  const [, timestamp, signature] = /^t=([0-9]+), s=([0-9a-f]{64})$/.exec(String(header)) ?? [];
  if (!secret || !timestamp) return false;
  return createHmac("sha256", secret).update(`${timestamp}.`).update(body).digest("hex") === signature;
}

/** Closes with the test that started it. */
export async function startSubscriber({
  answer = () => 204,
  onHello,
  onBody,
}: SubscriberOptions = {}): Promise<Subscriber> {
  const authority = await makeAuthority();
  const certificate = await issue({ authority, names: [HOST] });
  const context = createSecureContext(certificate);
  const secrets = new Map<string, string>();
  const received: Received[] = [];
  const counts = new Map<string, number>();
  let cutOff = 0;
  let respond = answer;

  const note = (path: string, header: string | string[] | undefined, body: Buffer): Received => {
    const notification = JSON.parse(body.toString()) as { id: string; event: { "hub.topic": string } };
    const { id: eventId } = notification;
    const webhookId = notification.event["hub.topic"];
    const id = `${webhookId}.${eventId}`;
    const earlier = counts.get(id) ?? 0;
    counts.set(id, earlier + 1);
    const entry: Received = {
      id,
      eventId,
      webhookId,
      path,
      at: Date.now(),
      earlier,
      isSigned: isSigned(header, secrets.get(webhookId), body),
      status: null,
    };
    received.push(entry);
    return entry;
  };

  const server = createServer(
    {
      ...certificate,
      SNICallback: (_name, callback) => {
        onHello?.();
        callback(null, context);
      },
    },
    (request, response) => {
      if (onBody) request.once("data", onBody);
      // The sender may break off whenever it likes.
      response.on("error", () => {});
      const serve = async (): Promise<void> => {
        const body = await buffer(request);
        const entry = note(request.url ?? "", request.headers["x-service-signature"], body);
        const status = await respond(entry);
        entry.status = status;
        response.writeHead(status).end();
      };
      serve().catch(() => {
        cutOff++;
      });
    },
  );
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  onTestFinished(async () => {
    server.closeAllConnections();
    server.close();
    await once(server, "close");
  });

  return {
    ca: authority.cert,
    url: (path) => `https://${HOST}:${port}${path}`,
    trust: (webhookId, secret) => void secrets.set(webhookId, secret),
    received,
    cutOff: () => cutOff,
    respond: (next) => {
      respond = next;
    },
  };
}
