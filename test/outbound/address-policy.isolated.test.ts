import { readFileSync } from "node:fs";
import net from "node:net";
import fc from "fast-check";
import ipaddr from "ipaddr.js";
import { afterEach, describe, expect, it, vi } from "vitest";
import { checkAddress, checkUrl } from "../../src/outbound/address-policy.js";
import { createOutboundClient } from "../../src/outbound/client.js";
import { createAddressPolicy, type DestinationOptions } from "../../src/outbound/destination-options.js";
import { manualClock } from "../../src/testing/manual-clock.js";

interface UrlCase {
  readonly id: string;
  readonly url: string;
  readonly verdict: "allow" | "block";
  /** No option allows the address. */
  readonly always?: boolean;
  readonly rule?: string;
  readonly why: string;
  readonly resolves?: readonly string[];
  readonly resolvesSequence?: readonly (readonly string[])[];
}

const { cases } = JSON.parse(readFileSync(new URL("../data/ssrf-urls.json", import.meta.url), "utf8")) as {
  cases: readonly UrlCase[];
};
const PUBLIC_ADDRESS = "93.184.215.14";

const ruleOf = (verdict: { ok: true } | { ok: false; rule: string }): string | undefined =>
  verdict.ok ? undefined : verdict.rule;

afterEach(() => {
  vi.restoreAllMocks();
});

describe("the verdict on a URL", () => {
  it.each(cases)("$id: $verdict, $why", ({ url, rule }) => {
    // R9 is about what a name resolves to, which the text alone cannot tell.
    expect(ruleOf(checkUrl(url))).toBe(rule === "R9" ? undefined : rule);
  });

  it.each(["R1", "R2", "R3", "R4", "R5", "R6", "R8"])(
    "says what to change where %s refuses, in one sentence",
    (rule) => {
      const example = cases.find((each) => each.rule === rule);
      const verdict = checkUrl(example?.url ?? "");
      expect(verdict.ok ? "" : verdict.message).toMatch(/^[A-Z].*\.$/);
    },
  );

  it.each([
    ["https://@example.com/", "R4"],
    ["https://:@example.com/", "R4"],
    ["https://example.com/\u00a0", "R1"],
    ["https://example.com/\u2028", "R1"],
    ["https://example.com/\ud800", "R1"],
    ["https://example.com/\u0085", "R1"],
    ["https:/example.com/", "R1"],
    ["https:/user@example.com/https://example.org/", "R1"],
    [`https://example.com/${"a".repeat(2049 - "https://example.com/".length)}`, "R1"],
    [`https://example.com/${"a".repeat(2048 - "https://example.com/".length)}`, undefined],
    [`https://${"a".repeat(63)}.example.com/`, undefined],
    [`https://${"a".repeat(64)}.example.com/`, "R6"],
    [`https://${`${"a".repeat(63)}.`.repeat(3)}${"a".repeat(61)}/`, undefined],
    [`https://${`${"a".repeat(63)}.`.repeat(3)}${"a".repeat(62)}/`, "R6"],
    ["https://a..example.com/", "R6"],
    ["https://example.com../", "R6"],
    ["https://home.arpa/", "R6"],
    ["https://home.arpa.example.com/", undefined],
    ["https://168.63.129.16/", "R7"],
    ["https://example.com:6667/", "R8"],
    ["https://example.com:443/", undefined],
  ])("%s: %s", (url, rule) => {
    expect(ruleOf(checkUrl(url))).toBe(rule);
  });

  it("names the place the request goes to", () => {
    expect(checkUrl("HTTPS://B\u00dcCHER.Example.com.:8443/caf\u00e9?q=1#part")).toEqual({
      ok: true,
      target: {
        origin: "https://xn--bcher-kva.example.com.:8443",
        path: "/caf%C3%A9?q=1",
        hostname: "xn--bcher-kva.example.com",
        isAddress: false,
        port: 8443,
        isSecure: true,
      },
    });
    expect(checkUrl("https://[2606:4700:4700::1111]")).toMatchObject({
      target: { hostname: "2606:4700:4700::1111", isAddress: true, port: 443, path: "/" },
    });
  });

  it("lets http pass only where the host allows it", () => {
    expect(ruleOf(checkUrl("http://example.com/", { allowPrivateNetworks: true }))).toBe("R3");
    expect(checkUrl("http://example.com/", { allowHttp: true })).toMatchObject({
      target: { port: 80, isSecure: false },
    });
    expect(ruleOf(checkUrl("ftp://example.com/", { allowHttp: true }))).toBe("R3");
    expect(ruleOf(checkUrl("http://127.0.0.1/", { allowHttp: true }))).toBe("R5");
    expect(ruleOf(checkUrl("http:127.0.0.1/", { allowHttp: true, allowPrivateNetworks: true }))).toBe("R1");
  });

  it.each([
    "localhost:8443",
    "api.localhost",
    "intranet",
    "printer.local",
    "127.0.0.1",
    "[::1]",
    "10.0.0.1",
    "[fd00::1]",
    "[2002:a00:1::1]",
    "[64:ff9b::a00:1]",
  ])("lets %s pass where private networks are allowed", (host) => {
    expect(ruleOf(checkUrl(`https://${host}/`))).toMatch(/R[567]/);
    expect(ruleOf(checkUrl(`https://${host}/`, { allowPrivateNetworks: true }))).toBeUndefined();
  });

  it.each([
    "0.0.0.0",
    "0.1.2.3",
    "[::]",
    "224.0.0.1",
    "[ff02::1]",
    "255.255.255.255",
    "[::ffff:0.0.0.0]",
    "[::ffff:224.0.0.1]",
    "[::ffff:255.255.255.255]",
  ])("refuses %s also where private networks are allowed", (host) => {
    expect(ruleOf(checkUrl(`https://${host}/`, { allowPrivateNetworks: true }))).toBe("R5");
  });

  describe.each<[string, DestinationOptions]>([
    ["allowPrivateNetworks", { allowPrivateNetworks: true }],
    ["allow with every address", { allow: ["0.0.0.0/0", "::/0"] }],
    ["both", { allowPrivateNetworks: true, allow: ["169.254.0.0/16", "168.63.129.16", "fd00:ec2::254/128"] }],
  ])("with %s", (_name, options) => {
    const policy = createAddressPolicy(options);

    it.each(cases.filter(({ always }) => always))("refuses $url, $why", ({ url, resolves }) => {
      const verdicts = resolves?.map((address) => checkAddress(address, policy)) ?? [checkUrl(url, policy)];
      expect(verdicts.map(ruleOf).find((rule) => rule !== undefined)).toMatch(/^R[57]$/);
    });

    it.each(cases.filter(({ rule }) => /^R[12348]$/.test(rule ?? "")))(
      "refuses $id: $why",
      ({ url, rule }) => {
        expect(ruleOf(checkUrl(url, policy))).toBe(rule);
      },
    );

    it.each(cases.filter(({ rule, always }) => rule === "R5" && !always))("allows $id: $why", ({ url }) => {
      expect(ruleOf(checkUrl(url, policy))).toBeUndefined();
    });
  });

  it("has an answer for any text, and lets through only what the parser reads the same way", () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.webUrl({ withQueryParameters: true, withFragments: true }),
          fc.string({ unit: "binary" }),
        ),
        (text) => {
          const verdict = checkUrl(text, { allowHttp: true });
          if (!verdict.ok) return;
          const url = new URL(text);
          expect(verdict.target.origin + verdict.target.path).toBe(url.origin + url.pathname + url.search);
          expect(url.username + url.password).toBe("");
        },
      ),
    );
  });
});

describe("the verdict on an address", () => {
  /** Ranges that the registry marks as globally reachable, but ipaddr.js does not call unicast. */
  const REACHABLE = new Set(["unicast", "as112", "amt", "as112v6"]);

  it("agrees with ipaddr.js on IPv4, Azure's platform address aside", () => {
    fc.assert(
      fc.property(
        fc.oneof(fc.ipV4(), fc.constantFrom("168.63.129.16", "192.31.196.1", "192.52.193.1", "192.175.48.1")),
        (address) => {
          const isPublic = REACHABLE.has(ipaddr.parse(address).range()) && address !== "168.63.129.16";
          expect(checkAddress(address).ok).toBe(isPublic);
        },
      ),
      { numRuns: 2000 },
    );
  });

  it("agrees with ipaddr.js on IPv6 in 2000::/3, and refuses all else", () => {
    const group = fc.integer({ min: 0, max: 0xffff });
    const first = fc.oneof(group, fc.constantFrom(0x2001, 0x2002, 0x2620, 0x3fff, 0x64, 0xfe80, 0xfc00, 0));
    const second = fc.oneof(
      group,
      fc.constantFrom(0, 2, 3, 4, 0x10, 0x20, 0x1ff, 0x200, 0xdb8, 0x4f, 0xff9b),
    );
    fc.assert(
      fc.property(first, second, fc.array(group, { minLength: 6, maxLength: 6 }), (head, next, rest) => {
        const address = [head, next, ...rest].map((part) => part.toString(16)).join(":");
        const range = ipaddr.IPv6.parse(address).range();
        const isProtocolBlock = head === 0x2001 && next < 0x200;
        const isPublic = head >> 13 === 1 && !isProtocolBlock && REACHABLE.has(range);
        expect(checkAddress(address).ok).toBe(isPublic);
      }),
      { numRuns: 2000 },
    );
  });

  it("refuses every IPv4 address in IPv6 clothes", () => {
    fc.assert(
      fc.property(
        fc.ipV4(),
        fc.constantFrom("::ffff:", "::", "64:ff9b::", "64:ff9b:1::", "::ffff:0:"),
        (address, prefix) => {
          expect(checkAddress(prefix + address).ok).toBe(false);
        },
      ),
    );
  });

  it.each(["", "example.com", "fe80::1%eth0", "8.8.8.8%x", "1.2.3", "0x8.8.8.8", " 8.8.8.8"])(
    "refuses %j, which is no address",
    (text) => {
      expect(ruleOf(checkAddress(text, { allowPrivateNetworks: true }))).toBe("R5");
    },
  );
});

describe("the option allow", () => {
  const allowed = (entries: readonly string[], host: string): boolean => {
    const policy = createAddressPolicy({ allow: entries });
    return checkUrl(`https://${host}/`, policy).ok;
  };

  it.each([
    [["10.20.0.0/16"], "10.20.0.1", true],
    [["10.20.0.0/16"], "10.20.255.255", true],
    [["10.20.0.0/16"], "10.21.0.0", false],
    [["10.20.0.0/16"], "10.19.255.255", false],
    [["10.20.3.4/16"], "10.20.0.1", true],
    [["10.20.0.0/16"], "[::ffff:10.20.0.1]", false],
    [["10.20.0.0/16"], "[64:ff9b::10.20.0.1]", false],
    [["10.20.0.0/16"], "hooks.internal", false],
    [["10.20.0.7"], "10.20.0.7", true],
    [["10.20.0.7"], "10.20.0.8", false],
    [["10.20.0.7/32"], "10.20.0.8", false],
    [["127.0.0.1"], "127.0.0.1", true],
    [["127.0.0.1"], "2130706433", true],
    [["fd12:3456::/48"], "[fd12:3456::1]", true],
    [["FD12:3456::/48"], "[fd12:3456:0:ffff::1]", true],
    [["fd12:3456::/48"], "[fd12:3456:1::1]", false],
    [["::1"], "[::1]", true],
    [["64:ff9b::/96"], "[64:ff9b::8.8.8.8]", true],
    [["64:ff9b::/96"], "[64:ff9b::169.254.169.254]", false],
    [["::ffff:0:0/96"], "[::ffff:10.20.0.1]", true],
    [["::ffff:0:0/96"], "10.20.0.1", false],
    [["0.0.0.0/0"], "[fd00::1]", false],
    [["::/0"], "10.0.0.1", false],
    [["hooks.internal"], "hooks.internal", true],
    [["hooks.internal"], "HOOKS.internal.", true],
    [["HOOKS.Internal."], "hooks.internal", true],
    [["hooks.internal"], "a.hooks.internal", false],
    [["hooks.internal"], "xhooks.internal", false],
    [["intranet"], "intranet", true],
    [["localhost"], "localhost:8443", true],
    [["b\u00fccher.internal"], "xn--bcher-kva.internal", true],
    [["my_host.internal"], "my_host.internal", true],
    [["*.svc.cluster.local"], "hooks.shop.svc.cluster.local", true],
    [["*.svc.cluster.local"], "SHOP.svc.cluster.local.", true],
    [["*.svc.cluster.local"], "svc.cluster.local", false],
    [["*.svc.cluster.local"], "xsvc.cluster.local", false],
    [["*.svc.cluster.local"], "svc.cluster.local.example.local", false],
    [["*.localhost"], "api.localhost", true],
    [["10.0.0.0/8", "hooks.internal"], "[fd00::1]", false],
    [[], "10.0.0.1", false],
  ] as const)("%j, %s: %s", (entries, host, isAllowed) => {
    expect(allowed(entries, host)).toBe(isAllowed);
  });

  it.each([
    ["hooks.internal", "10.1.2.3", true],
    ["hooks.internal", "127.0.0.1", true],
    ["hooks.internal", "fd00::1", true],
    ["hooks.internal", "169.254.169.254", false],
    ["hooks.internal", "fd00:ec2::254", false],
    ["hooks.internal", "168.63.129.16", false],
    ["hooks.internal", "0.0.0.0", false],
    ["hooks.internal", "224.0.0.1", false],
    ["a.wild.internal", "10.1.2.3", true],
    ["wild.internal", "10.1.2.3", false],
    ["other.example.com", "10.1.2.3", false],
    ["other.example.com", "10.20.0.1", true],
    ["other.example.com", "93.184.215.14", true],
    ["metadata.google.internal", "169.254.169.254", false],
    ["metadata.google.internal", "fd20:ce::254", false],
  ])("the name %s may have the address %s: %s", (hostname, address, isAllowed) => {
    const allow = ["10.20.0.0/16", "hooks.internal", "*.wild.internal", "metadata.google.internal"];
    expect(checkAddress(address, createAddressPolicy({ allow }), hostname).ok).toBe(isAllowed);
  });

  it("does not allow http:// or the port of another protocol", () => {
    const policy = createAddressPolicy({ allow: ["10.20.0.0/16", "hooks.internal"] });
    expect(ruleOf(checkUrl("http://hooks.internal/", policy))).toBe("R3");
    expect(ruleOf(checkUrl("http://10.20.0.1/", policy))).toBe("R3");
    expect(ruleOf(checkUrl("https://10.20.0.1:22/", policy))).toBe("R8");
    expect(ruleOf(checkUrl("https://hooks.internal:6000/", policy))).toBe("R8");
    expect(ruleOf(checkUrl("https://hooks.internal:8443/", policy))).toBeUndefined();
  });

  it("is copied: a later change of the list has no effect", () => {
    const allow = ["10.20.0.0/16"];
    const policy = createAddressPolicy({ allow });
    allow.push("10.21.0.0/16");
    expect(checkUrl("https://10.21.0.1/", policy).ok).toBe(false);
  });
});

describe("what the client does with a URL", () => {
  /** Every socket of the process is connected here; none gets anywhere in these tests. */
  function watchSockets() {
    return vi.spyOn(net.Socket.prototype, "connect").mockImplementation(function (this: net.Socket) {
      process.nextTick(() =>
        this.destroy(Object.assign(new Error("stopped by the test"), { code: "ECONNREFUSED" })),
      );
      return this;
    });
  }

  function startClient(lookUps: readonly (readonly string[])[]) {
    const asked: string[] = [];
    const client = createOutboundClient({
      clock: manualClock(0),
      resolve: async (hostname) => lookUps[asked.push(hostname) - 1] ?? [],
    });
    const send = (url: string) =>
      client.send({
        url,
        method: "POST",
        headers: {},
        body: Buffer.from("x"),
        deadlineMs: 1000,
        maxBodyBytes: 0,
      });
    return { client, send, asked };
  }

  it.each(cases.filter(({ verdict }) => verdict === "allow"))(
    "$id: opens a socket, $why",
    async ({ url }) => {
      const connect = watchSockets();
      const { client, send } = startClient([[PUBLIC_ADDRESS]]);
      expect(await send(url)).toMatchObject({ kind: "connect", code: "ECONNREFUSED" });
      expect(connect).toHaveBeenCalledOnce();
      await client.close();
    },
  );

  it.each(cases.filter(({ verdict }) => verdict === "block"))(
    "$id: opens no socket, $why",
    async ({ url, rule, resolves, resolvesSequence }) => {
      const connect = watchSockets();
      const lookUps = resolvesSequence ?? [resolves ?? [PUBLIC_ADDRESS]];
      const { client, send, asked } = startClient(lookUps);

      // A case with a sequence is refused at the last look-up; at the earlier ones a socket may be
      // opened.
      for (const _earlier of lookUps.slice(1)) await send(url);
      expect(connect).toHaveBeenCalledTimes(lookUps.length - 1);

      expect(await send(url)).toMatchObject({ kind: "refused", code: rule === "R9" ? "R5" : rule });
      expect(connect).toHaveBeenCalledTimes(lookUps.length - 1);
      expect(asked).toHaveLength(rule === "R9" ? lookUps.length : 0);
      await client.close();
    },
  );
});
