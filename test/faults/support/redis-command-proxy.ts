/**
 * A proxy in front of Redis that reads each command: it may put another in its place, lose its
 * reply, or let a connection die in silence.
 */

import net from "node:net";
import { toCalledFunction } from "../../support/redis-function.js";

export interface Command {
  /** In capitals. */
  readonly name: string;
  /** Of an FCALL: the name of the storage's function. */
  readonly script: string | undefined;
}

export type Fate =
  | "pass"
  /** Redis carries it out, and the connection ends before the answer. */
  | "lose-reply"
  /** Redis gets this command in its place. */
  | { readonly instead: readonly string[] };

export interface CommandProxy {
  readonly url: string;
  readonly port: number;
  /** Decides what happens to each command from now on. */
  readonly decide: (decide: (command: Command) => Fate) => void;
  /**
   * The connections open now carry nothing any more, not even their end; new ones work: as after
   * the loss of a machine or of a firewall's state.
   */
  readonly silence: () => void;
  readonly stop: () => Promise<void>;
}

/** Redis itself gives the error, so that it comes in its turn. */
export const errorReply = (text: string): Fate => ({
  instead: ["EVAL", "return {err = ARGV[1]}", "0", text],
});

const encode = (args: readonly string[]): Buffer =>
  Buffer.from(`*${args.length}\r\n${args.map((arg) => `$${Buffer.byteLength(arg)}\r\n${arg}\r\n`).join("")}`);

interface Parsed {
  readonly args: readonly Buffer[];
  readonly end: number;
}

/** The command that begins at `from`; `undefined` where it has not come to its end. */
function parse(bytes: Buffer, from: number): Parsed | undefined {
  const number = (at: number): { readonly value: number; readonly next: number } | undefined => {
    const end = bytes.indexOf("\r\n", at);
    return end === -1 ? undefined : { value: Number(bytes.toString("latin1", at + 1, end)), next: end + 2 };
  };
  const count = number(from);
  if (!count) return undefined;
  const args: Buffer[] = [];
  let at = count.next;
  while (args.length < count.value) {
    const length = number(at);
    if (!length || bytes.length < length.next + length.value + 2) return undefined;
    args.push(bytes.subarray(length.next, length.next + length.value));
    at = length.next + length.value + 2;
  }
  return { args, end: at };
}

function read(args: readonly Buffer[]): Command {
  const [name = "", script = ""] = args.slice(0, 2).map(String);
  const isCall = /^fcall$/i.test(name);
  return { name: name.toUpperCase(), script: isCall ? toCalledFunction(script) : undefined };
}

export async function startCommandProxy(target: { readonly port: number }): Promise<CommandProxy> {
  let fateOf: (command: Command) => Fate = () => "pass";
  const sockets = new Set<net.Socket>();
  let silenced = new WeakSet<net.Socket>();

  const accept = (client: net.Socket): void => {
    const upstream = net.connect({ host: "127.0.0.1", port: target.port, noDelay: true });
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on("error", () => {});
      socket.on("close", () => {
        sockets.delete(socket);
        if (!silenced.has(client)) (socket === client ? upstream : client).destroy();
      });
    }
    let unread = Buffer.alloc(0);
    let isLost = false;
    client.on("data", (chunk: Buffer) => {
      if (isLost || silenced.has(client)) return;
      unread = Buffer.concat([unread, chunk]);
      for (let next = parse(unread, 0); next && !isLost; next = parse(unread, 0)) {
        const bytes = unread.subarray(0, next.end);
        unread = unread.subarray(next.end);
        const fate = fateOf(read(next.args));
        isLost = fate === "lose-reply";
        upstream.write(typeof fate === "object" ? encode(fate.instead) : bytes);
        // An orderly end: a reset could overtake the command on its way.
        if (isLost) upstream.end();
      }
    });
    upstream.on("data", (chunk: Buffer) => {
      if (!isLost && !silenced.has(client)) client.write(chunk);
    });
  };

  const server = net.createServer({ noDelay: true }, accept);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as net.AddressInfo;
  return {
    url: `redis://127.0.0.1:${port}`,
    port,
    decide(decide) {
      fateOf = decide;
    },
    silence() {
      silenced = new WeakSet(sockets);
    },
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        silenced = new WeakSet();
        for (const socket of sockets) socket.destroy();
      }),
  };
}
