/** A DNS server on loopback that answers from a table, over UDP. */

import { createSocket, type Socket } from "node:dgram";

export interface DnsAnswer {
  /** 2 SERVFAIL, 3 NXDOMAIN. Default 0. */
  readonly code?: number | undefined;
  readonly ipv4?: readonly string[] | undefined;
  /** All groups written out. */
  readonly ipv6?: readonly string[] | undefined;
  /** The name is an alias of this one. */
  readonly alias?: string | undefined;
  /** The record type whose queries are not answered. */
  readonly mute?: "A" | "AAAA" | undefined;
}

export interface DnsServer {
  /** As `Resolver.setServers` takes it. */
  readonly address: string;
  /** Names asked for, with the record type. */
  readonly queries: readonly string[];
  readonly close: () => Promise<void>;
}

const HEADER_BYTES = 12;
const TYPES: Readonly<Record<number, string>> = { 1: "A", 5: "CNAME", 28: "AAAA" };

function encodeName(name: string): Buffer {
  const labels = name.split(".").map((label) => Buffer.from([label.length, ...Buffer.from(label)]));
  return Buffer.concat([...labels, Buffer.from([0])]);
}

function record(name: string, type: number, data: Buffer): Buffer {
  const fixed = Buffer.alloc(10);
  fixed.writeUInt16BE(type, 0);
  fixed.writeUInt16BE(1, 2);
  fixed.writeUInt16BE(data.length, 8);
  return Buffer.concat([encodeName(name), fixed, data]);
}

const ipv4Bytes = (address: string): Buffer => Buffer.from(address.split(".").map(Number));
const ipv6Bytes = (address: string): Buffer =>
  Buffer.from(
    address
      .split(":")
      .map((group) => group.padStart(4, "0"))
      .join(""),
    "hex",
  );

/** A name that is not in the table is never answered. */
export async function startDnsServer(table: Readonly<Record<string, DnsAnswer>>): Promise<DnsServer> {
  const queries: string[] = [];
  const socket: Socket = createSocket("udp4");
  socket.on("message", (query, { port, address }) => {
    const labels: string[] = [];
    let at = HEADER_BYTES;
    for (let length = query[at] ?? 0; length > 0; length = query[at] ?? 0) {
      labels.push(query.toString("latin1", at + 1, at + 1 + length));
      at += length + 1;
    }
    const name = labels.join(".").toLowerCase();
    const type = query.readUInt16BE(at + 1);
    queries.push(`${TYPES[type] ?? type} ${name}`);
    const answer = table[name];
    if (answer === undefined || answer.mute === TYPES[type]) return;

    const owner = answer.alias ?? name;
    const records = [
      ...(answer.alias === undefined ? [] : [record(name, 5, encodeName(answer.alias))]),
      ...(type === 1 ? (answer.ipv4 ?? []).map((each) => record(owner, 1, ipv4Bytes(each))) : []),
      ...(type === 28 ? (answer.ipv6 ?? []).map((each) => record(owner, 28, ipv6Bytes(each))) : []),
    ];
    const header = Buffer.alloc(HEADER_BYTES);
    query.copy(header, 0, 0, 2);
    header.writeUInt16BE(0x8180 | (answer.code ?? 0), 2);
    header.writeUInt16BE(1, 4);
    header.writeUInt16BE(records.length, 6);
    socket.send(Buffer.concat([header, query.subarray(HEADER_BYTES, at + 5), ...records]), port, address);
  });
  await new Promise<void>((resolve) => socket.bind(0, "127.0.0.1", resolve));
  return {
    address: `127.0.0.1:${socket.address().port}`,
    queries,
    close: () => new Promise((resolve) => socket.close(() => resolve())),
  };
}
