/**
 * A real SMTP server on loopback that a test tells what to refuse, and that keeps the mails it
 * took.
 */

import type { AddressInfo } from "node:net";
import PostalMime, { type Email } from "postal-mime";
import { SMTPServer, type SMTPServerOptions } from "smtp-server";

export interface TakenMail {
  /** Of the envelope. */
  readonly recipients: readonly string[];
  readonly mail: Email;
  readonly raw: string;
  readonly isEncrypted: boolean;
  readonly user: unknown;
}

export interface MailServer {
  readonly port: number;
  readonly url: string;
  readonly mails: readonly TakenMail[];
  /** Connections accepted so far. */
  readonly connections: () => number;
  /** Resolves when no connection is open. */
  readonly idle: () => Promise<void>;
  readonly close: () => Promise<void>;
}

/** An answer such as `451 4.7.1 Try again later`; `undefined`: it is taken. */
type Judge = (text: string) => string | undefined | Promise<string | undefined>;

export interface MailServerOptions {
  readonly recipient?: Judge | undefined;
  readonly sender?: Judge | undefined;
  /** Of the whole message, which is taken if the answer is `undefined`. */
  readonly message?: Judge | undefined;
  readonly port?: number | undefined;
  readonly server?: SMTPServerOptions | undefined;
}

async function judged(text: string, judge: Judge | undefined): Promise<Error | undefined> {
  const answer = await judge?.(text);
  if (answer === undefined) return undefined;
  return Object.assign(new Error(answer.slice(4)), { responseCode: Number(answer.slice(0, 3)) });
}

export async function startMailServer({
  recipient,
  sender,
  message,
  port = 0,
  server: options = {},
}: MailServerOptions = {}): Promise<MailServer> {
  const mails: TakenMail[] = [];
  let connections = 0;
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ["STARTTLS"],
    disableReverseLookup: true,
    closeTimeout: 1,
    onConnect(_, done) {
      connections++;
      done();
    },
    onMailFrom: ({ address }, _, done) => void judged(address, sender).then((error) => done(error)),
    onRcptTo: ({ address }, _, done) => void judged(address, recipient).then((error) => done(error)),
    onData(stream, session, done) {
      const take = async (): Promise<Error | undefined> => {
        const pieces: Buffer[] = [];
        for await (const piece of stream) pieces.push(piece as Buffer);
        const bytes = Buffer.concat(pieces);
        const error = await judged(bytes.toString(), message);
        if (error) return error;
        mails.push({
          recipients: session.envelope.rcptTo.map(({ address }) => address),
          mail: await PostalMime.parse(bytes),
          raw: bytes.toString(),
          isEncrypted: session.secure,
          user: session.user,
        });
        return undefined;
      };
      take().then((error) => done(error), done);
    },
    ...options,
  });
  // A client that gives up is what some tests are about.
  server.on("error", () => {});
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  const used = (server.server.address() as AddressInfo).port;
  return {
    port: used,
    url: `smtp://127.0.0.1:${used}`,
    mails,
    connections: () => connections,
    async idle() {
      while (server.connections.size > 0) await new Promise((resolve) => setImmediate(resolve));
    },
    close: () => new Promise((resolve) => server.close(() => resolve())),
  };
}
