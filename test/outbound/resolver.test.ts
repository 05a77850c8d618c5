import dns from "node:dns";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { createResolver, type Resolve } from "../../src/outbound/connection.js";
import { type DnsServer, startDnsServer } from "../support/dns-server.js";

const PUBLIC_IPV6 = "2606:4700:4700:0:0:0:0:1111";

let server: DnsServer;
let resolve: Resolve;

const resolverThatWaits = (timeoutMs: number): Resolve =>
  createResolver({ servers: [server.address], timeoutMs });

beforeAll(async () => {
  server = await startDnsServer({
    "both.example.com": { ipv4: ["93.184.215.14"], ipv6: [PUBLIC_IPV6] },
    "four.example.com": { ipv4: ["93.184.215.14"] },
    "six.example.com": { ipv6: [PUBLIC_IPV6] },
    "alias.example.com": { alias: "both.example.net", ipv4: ["93.184.215.15"] },
    "loop.example.com": { alias: "loop.example.com" },
    "none.example.com": {},
    "missing.example.com": { code: 3 },
    notlocalhost: { code: 3 },
    "broken.example.com": { code: 2 },
    "crowd.example.com": {
      ipv4: Array.from({ length: 40 }, (_, at) => `93.184.215.${at}`),
      ipv6: [PUBLIC_IPV6],
    },
  });
  resolve = resolverThatWaits(30_000);
});

afterAll(async () => {
  await server.close();
});

describe("the resolver", () => {
  it.each([
    ["both.example.com", ["93.184.215.14", "2606:4700:4700::1111"]],
    ["four.example.com", ["93.184.215.14"]],
    ["six.example.com", ["2606:4700:4700::1111"]],
    ["alias.example.com", ["93.184.215.15"]],
  ])("finds the addresses of %s, IPv4 first", async (name, addresses) => {
    expect(await resolve(name)).toEqual(addresses);
  });

  it("asks for both families at once, and never goes through the thread pool", async () => {
    const lookup = vi.spyOn(dns, "lookup");
    const before = server.queries.length;
    await resolve("both.example.com");
    expect([...server.queries.slice(before)].sort()).toEqual(["A both.example.com", "AAAA both.example.com"]);
    expect(lookup).not.toHaveBeenCalled();
    lookup.mockRestore();
  });

  it.each([
    ["missing.example.com", "ENOTFOUND"],
    ["none.example.com", "ENODATA"],
    ["broken.example.com", "ESERVFAIL"],
    ["a..b", "EBADNAME"],
  ])("rejects %s with %s", async (name, code) => {
    await expect(resolve(name)).rejects.toMatchObject({ code });
  });

  it("rejects a name that no server answers for with ETIMEOUT", async () => {
    await expect(resolverThatWaits(50)("mute.example.com")).rejects.toMatchObject({ code: "ETIMEOUT" });
  });

  it("finds nothing behind a name that is an alias of itself", async () => {
    expect(await resolve("loop.example.com")).toEqual([]);
  });

  it("takes at most 32 addresses of a family", async () => {
    const addresses = await resolve("crowd.example.com");
    expect(addresses).toHaveLength(33);
    expect(addresses.at(-1)).toBe("2606:4700:4700::1111");
  });

  it.each(["localhost", "LOCALHOST", "api.localhost"])("knows %s without asking", async (name) => {
    const before = server.queries.length;
    expect(await resolve(name)).toEqual(["127.0.0.1", "::1"]);
    expect(server.queries).toHaveLength(before);
  });

  it("knows only whole labels as localhost", async () => {
    await expect(resolve("notlocalhost")).rejects.toMatchObject({ code: "ENOTFOUND" });
  });
});
