import dns from "node:dns";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { createResolver, type FindAddresses, Names, type Resolve } from "../../src/outbound/resolver.js";
import { manualClock } from "../../src/testing/manual-clock.js";
import { type DnsServer, startDnsServer } from "../support/dns-server.js";
import { until } from "../support/https-endpoint.js";

const PUBLIC_IPV6 = "2606:4700:4700:0:0:0:0:1111";

let server: DnsServer;
let resolve: Resolve;

const clock = manualClock(0);

const resolverThatWaits =
  (limitMs: number): Resolve =>
  async (name) =>
    (await createResolver({ clock, servers: () => [server.address], limitMs })(name)).addresses;

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
    "no-aaaa.example.com": { ipv4: ["93.184.215.14"], mute: "AAAA" },
    "no-a.example.com": { ipv6: [PUBLIC_IPV6], mute: "A" },
    "crowd.example.com": {
      ipv4: Array.from({ length: 40 }, (_, at) => `93.184.215.${at}`),
      ipv6: [PUBLIC_IPV6],
    },
  });
  resolve = resolverThatWaits(90_000);
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

describe("the resolver at a server that answers for one family only", () => {
  it.each([
    ["no-aaaa.example.com", "93.184.215.14"],
    ["no-a.example.com", "2606:4700:4700::1111"],
  ])("has found %s 50 ms later, and the other family comes late", async (name, address) => {
    const find = createResolver({ clock, servers: () => [server.address], limitMs: 300 });
    let isFound = false;
    const finding = find(name).then((found) => {
      isFound = true;
      return found;
    });
    await until(() => clock.nextTimerAt() !== undefined);
    await clock.advance(49);
    expect(isFound).toBe(false);
    await clock.advance(1);
    const { addresses, otherFamily } = await finding;
    expect(addresses).toEqual([address]);
    expect(await otherFamily).toEqual([]);
    expect(clock.nextTimerAt()).toBeUndefined();
  });
});

describe("the resolver after a lookup that nobody answered", () => {
  it("asks the servers that are configured then, in the same lookup", async () => {
    const gone = await startDnsServer({});
    await gone.close();
    let configured = gone.address;
    const find = createResolver({ clock, servers: () => [configured], limitMs: 300 });
    await expect(find("four.example.com")).rejects.toMatchObject({ code: "ECONNREFUSED" });
    configured = server.address;
    await clock.advance(1_000);
    expect(await find("four.example.com")).toEqual({ addresses: ["93.184.215.14"] });
  });

  it.each([
    ["once a second", "mute.example.com", 2],
    ["not at all if a server has answered", "broken.example.com", 1],
  ])("reads the configuration again %s", async (_, name, count) => {
    let readCount = 0;
    const servers = () => {
      readCount += 1;
      return [server.address];
    };
    const find = createResolver({ clock, servers, limitMs: 50 });
    for (let lookups = 0; lookups < 3; lookups++) await find(name).catch(() => {});
    expect(readCount).toBe(count);
    await clock.advance(1_000);
    await find(name).catch(() => {});
    expect(readCount).toBe(count === 1 ? 1 : 3);
  });

  it("has sent two queries of each family to each of three servers, and no more", async () => {
    const servers = await Promise.all([startDnsServer({}), startDnsServer({}), startDnsServer({})]);
    const find = createResolver({
      clock,
      servers: () => servers.map(({ address }) => address),
      limitMs: 300,
    });
    await expect(find("mute.example.com")).rejects.toMatchObject({ code: "ETIMEOUT" });
    // c-ares prefers servers that failed less often, so some get more and some fewer.
    expect(servers.flatMap(({ queries }) => queries)).toHaveLength(2 * 2 * 3);
    await Promise.all(servers.map(({ close }) => close()));
  });
});

describe("names that nobody answers for", () => {
  /** Names whose lookups fail with these codes. The others have an address. */
  function namesWith(failures: Record<string, string>, isHosts = true) {
    const asked: string[] = [];
    const find: FindAddresses = async (hostname) => {
      asked.push(hostname);
      const code = failures[hostname];
      if (code !== undefined) throw Object.assign(new Error(code), { code });
      return { addresses: ["93.184.215.14"] };
    };
    const resolve: Resolve = async (hostname) => (await find(hostname)).addresses;
    const names = isHosts ? new Names(clock, resolve) : new Names(clock, undefined, find);
    return { asked, names, failures };
  }
  const outage = { code: "RESOLVER_UNAVAILABLE" };

  it.each(["ETIMEOUT", "ESERVFAIL", "ECONNREFUSED", "EAI_AGAIN"])(
    "are those of a dead zone while another name has an address (%s)",
    async (code) => {
      const { names } = namesWith({ "hooks.dead.test": code, "hooks.dark.test": code });
      await names.find("a.alive.test");
      await expect(names.find("hooks.dead.test")).rejects.toMatchObject({ code });
      await expect(names.find("hooks.dark.test")).rejects.toMatchObject({ code });
      await expect(
        Promise.all([names.find("hooks.dead.test"), names.find("hooks.dark.test")]),
      ).rejects.toMatchObject({ code });
    },
  );

  it.each(["ETIMEOUT", "ESERVFAIL", "ECONNREFUSED", "EAI_AGAIN"])(
    "are an outage of the resolver if a name fails that had an address, until one is answered (%s)",
    async (code) => {
      const { names, failures } = namesWith({});
      await names.find("a.first.test");
      await names.find("a.second.test");
      Object.assign(failures, { "a.first.test": code, "a.second.test": code });
      await expect(names.find("a.second.test")).rejects.toMatchObject(outage);
      await expect(names.find("a.first.test")).rejects.toMatchObject(outage);
      delete failures["a.first.test"];
      expect(await names.find("a.first.test")).toMatchObject({ addresses: ["93.184.215.14"] });
      await expect(names.find("a.second.test")).rejects.toMatchObject({ code });
    },
  );

  it("are an outage in the second zone if no name was ever answered", async () => {
    const code = "ETIMEOUT";
    const { names } = namesWith({ "a.one.test": code, "b.one.test": code, "a.two.test": code });
    await expect(names.find("a.one.test")).rejects.toMatchObject({ code });
    await expect(names.find("b.one.test")).rejects.toMatchObject({ code });
    await expect(names.find("a.two.test")).rejects.toMatchObject(outage);
  });

  it("are an outage if the system's servers do not answer for the root either", async () => {
    const { asked, names, failures } = namesWith({ "a.one.test": "ETIMEOUT", ".": "ETIMEOUT" }, false);
    await expect(names.find("a.one.test")).rejects.toMatchObject(outage);
    expect(asked).toEqual(["a.one.test", "."]);
    failures["."] = "ENODATA";
    await expect(names.find("a.one.test")).rejects.toMatchObject({ code: "ETIMEOUT" });
  });

  it.each(["ENOTFOUND", "ENODATA", "EBADNAME"])("are not those that end in %s", async (code) => {
    const { asked, names } = namesWith({ "a.one.test": code, "a.two.test": code, ".": "ETIMEOUT" }, false);
    await expect(names.find("a.one.test")).rejects.toMatchObject({ code });
    await expect(names.find("a.two.test")).rejects.toMatchObject({ code });
    expect(asked).toHaveLength(2);
  });

  it("share one query for another name, however many fail at once", async () => {
    const failing = Array.from({ length: 200 }, (_, at) => `hooks.zone-${at}.test`);
    const { asked, names } = namesWith(Object.fromEntries(failing.map((name) => [name, "ETIMEOUT"])), false);
    const results = await Promise.allSettled(failing.map((name) => names.find(name)));
    expect(asked.filter((name) => name === ".")).toHaveLength(1);
    expect(new Set(results.map((result) => result.status === "rejected" && result.reason.code))).toEqual(
      new Set(["ETIMEOUT"]),
    );
  });

  it.each([true, false])(
    "are those of two dead zones if one of the other 50 is answered (the host's function: %s)",
    async (isHosts) => {
      const { names, failures } = namesWith({}, isHosts);
      for (let at = 0; at < 50; at++) await names.find(`hooks.zone-${at}.test`);
      const [first, second] = ["hooks.evil-a.test", "hooks.evil-b.test"] as const;
      for (const name of [first, second]) await names.find(name);
      Object.assign(failures, { [first]: "ESERVFAIL", [second]: "ESERVFAIL" });
      await expect(names.find(first)).rejects.toMatchObject({ code: "ESERVFAIL" });
      await expect(names.find(second)).rejects.toMatchObject({ code: "ESERVFAIL" });
    },
  );

  it("are an outage of the system's servers only if the root fails, too", async () => {
    const { names, failures } = namesWith({}, false);
    for (const name of ["a.one.test", "a.two.test"]) await names.find(name);
    Object.assign(failures, { "a.one.test": "ETIMEOUT", "a.two.test": "ETIMEOUT" });
    await expect(names.find("a.one.test")).rejects.toMatchObject({ code: "ETIMEOUT" });
    failures["."] = "ETIMEOUT";
    await expect(names.find("a.one.test")).rejects.toMatchObject(outage);
  });

  it("are not judged by a query for their own zone that another lookup needs", async () => {
    const { names, failures } = namesWith({});
    for (const name of ["a.alive.test", "a.dead.test"]) await names.find(name);
    Object.assign(failures, { "a.dead.test": "ETIMEOUT", "a.dark.test": "ETIMEOUT" });
    const found = await Promise.allSettled(["a.dark.test", "a.dead.test"].map((name) => names.find(name)));
    expect(found).toMatchObject([{ reason: { code: "ETIMEOUT" } }, { reason: { code: "ETIMEOUT" } }]);
  });

  it("end after the time limit if the host's function does not", async () => {
    const names = new Names(clock, () => new Promise(() => {}), undefined, 800);
    const codes: unknown[] = [];
    for (const name of ["a.one.test", "b.one.test", "a.two.test"])
      void names.find(name).catch(({ code }: { code?: unknown }) => codes.push(code));
    await clock.advance(799);
    expect(codes).toEqual([]);
    await clock.advance(1);
    await until(() => codes.length === 3);
    expect(codes).toEqual(["ETIMEOUT", "ETIMEOUT", "RESOLVER_UNAVAILABLE"]);
  });
});
