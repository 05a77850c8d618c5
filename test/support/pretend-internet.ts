/**
 * Public hosts that are all one TLS server on loopback: what is dialled, and what they are asked,
 * without leaving this machine.
 */

import net from "node:net";
import { vi } from "vitest";
import { type Certificate, issue, makeAuthority } from "./certificates.js";
import { startEndpoint } from "./https-endpoint.js";

export interface Visit {
  readonly host: string;
  /** With the query. */
  readonly path: string;
  readonly head: string;
}

export interface PretendInternet {
  /** PEM of the authority that signs for the hosts. */
  readonly ca: string;
  /** In place of DNS: a public address for every name but for those that `setAddress` has named. */
  readonly resolve: (name: string) => Promise<readonly string[]>;
  readonly setAddress: (name: string, address: string) => void;
  /** Hosts that a socket was opened to, in order. */
  readonly dialled: readonly string[];
  readonly visits: readonly Visit[];
  /** Answers the visits from now on. */
  readonly answer: (respond: (socket: net.Socket, visit: Visit) => void) => void;
  readonly openConnections: () => number;
  /** Forgets what was dialled and visited. */
  readonly forget: () => void;
  readonly close: () => Promise<void>;
}

const PUBLIC_ADDRESS = "93.184.215.14";

/** By the names that they are for. */
const issued = new Map<string, Promise<{ readonly ca: string; readonly certificate: Certificate }>>();

async function certificates(hosts: readonly string[]): Promise<{ ca: string; certificate: Certificate }> {
  const authority = await makeAuthority();
  return { ca: authority.cert, certificate: await issue({ authority, names: hosts }) };
}

/** Replaces `net.connect` until mocks are restored. */
export async function pretendInternet(hosts: readonly string[]): Promise<PretendInternet> {
  const names = hosts.join();
  const made = issued.get(names) ?? certificates(hosts);
  issued.set(names, made);
  const { ca, certificate } = await made;
  const dialled: string[] = [];
  const visits: Visit[] = [];
  const addresses = new Map<string, string>();
  let respond: (socket: net.Socket, visit: Visit) => void = (socket) => socket.end();
  const endpoint = await startEndpoint({
    certificate,
    respond(socket, { head }) {
      const visit = {
        host: /^host: (.*)$/m.exec(head)?.[1]?.trim() ?? "",
        path: head.split(" ")[1] ?? "",
        head,
      };
      visits.push(visit);
      respond(socket, visit);
    },
  });
  const connect = net.connect;
  vi.spyOn(net, "connect").mockImplementation(((options: net.TcpNetConnectOpts) => {
    dialled.push(options.host ?? "");
    const socket = connect({ host: "127.0.0.1", port: endpoint.port });
    Object.defineProperty(socket, "remoteAddress", { value: PUBLIC_ADDRESS });
    return socket;
  }) as typeof net.connect);
  return {
    ca,
    resolve: async (name) => [addresses.get(name) ?? PUBLIC_ADDRESS],
    setAddress: (name, address) => void addresses.set(name, address),
    dialled,
    visits,
    answer(next) {
      respond = next;
    },
    openConnections: endpoint.openConnections,
    forget() {
      dialled.length = 0;
      visits.length = 0;
    },
    close: endpoint.close,
  };
}
