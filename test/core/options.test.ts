import { generateKeyPairSync } from "node:crypto";
import { join } from "node:path";
import { rootCertificates } from "node:tls";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { root } from "../../scripts/house.js";
import { systemClock } from "../../src/core/clock.js";
import { isPostbellError, type PostbellError } from "../../src/core/errors.js";
import { type OptionTable, value as optionOf, readOptions, wholeNumber } from "../../src/core/options.js";
import type { HttpRequest } from "../../src/http/types.js";
import { bearer } from "../../src/webhooks/access.js";
import type { WebhooksOptions } from "../../src/webhooks/config/webhooks-options.js";
import { readConfig, webhooksOptions } from "../../src/webhooks/options.js";
import { createWebhooks } from "../../src/webhooks/service.js";
import { type MemoryStorageOptions, memoryStorage } from "../../storage/memory/index.js";
import { memoryStorageOptions } from "../../storage/memory/options.js";
import { access, registrationApi, URL_1 } from "../support/registration-api.js";
import { sourceFiles } from "../support/source-files.js";

const ROOT = rootCertificates[0] ?? "";
const ED25519 = String(generateKeyPairSync("ed25519").privateKey.export({ format: "pem", type: "pkcs8" }));
const HOUR = 3_600_000;
const required = { storage: memoryStorage(), access };
const noop = (): void => {};
const ANY_FUNCTION: unknown = expect.any(Function);

/** The error that creating the service with these options beside the required ones throws. */
function refusal(options: object): PostbellError {
  try {
    createWebhooks({ ...required, ...options });
  } catch (error) {
    if (isPostbellError(error, "invalid_option")) return error;
    throw error;
  }
  throw new Error("The options were accepted.");
}

const at = (path: string, value: unknown): object =>
  path.split(".").reduceRight<unknown>((inner, key) => ({ [key]: inner }), value) as object;

function optionsOf(table: OptionTable, path = ""): string[] {
  return Object.entries(table).flatMap(([key, entry]) =>
    typeof entry["expected"] === "function"
      ? [path + key]
      : optionsOf(entry as OptionTable, `${path}${key}.`),
  );
}

const isTable = (given: unknown): given is OptionTable =>
  typeof given === "object" &&
  given !== null &&
  Object.values(given).every((entry) => typeof entry?.expected === "function" || isTable(entry));

/** Every exported table of the source, with its name. */
async function loadTables(): Promise<readonly (readonly [name: string, table: OptionTable])[]> {
  const declaring = sourceFiles().filter(
    ({ path, text }) => /\.ts$/.test(path) && /^export const \w+Options = \{$/m.test(text),
  );
  const load = ({ path }: { readonly path: string }) =>
    import(/* @vite-ignore */ join(root, path)) as Promise<Record<string, unknown>>;
  const found = (await Promise.all(declaring.map(load))).flatMap((module) => Object.entries(module));
  return found.filter(
    (entry): entry is [string, OptionTable] => /Options$/.test(entry[0]) && isTable(entry[1]),
  );
}

const NO_NUMBERS = ["1", true, null, {}, [], Number.NaN, Number.POSITIVE_INFINITY, 1.5, -1, 2 ** 53];
const NO_FLAGS = [1, 0, "true", null, {}, []];
const NO_FUNCTIONS = [1, "f", true, null, {}, []];

/** For each option: values to refuse, and values at the very edge of what is accepted. */
const OPTIONS: Readonly<
  Record<string, { readonly bad: readonly unknown[]; readonly good: readonly unknown[] }>
> = {
  storage: { bad: [null, 1, "redis://", {}, { webhooks: 1 }, noop], good: [memoryStorage()] },
  "access.authenticate": { bad: NO_FUNCTIONS, good: [noop] },
  "access.canRead": { bad: NO_FUNCTIONS, good: [noop] },
  "access.canActFor": { bad: NO_FUNCTIONS, good: [noop] },
  events: { bad: [null, 1, "patient.created", noop, []], good: [{ "a.b": "Patient" }] },
  resolveReference: { bad: NO_FUNCTIONS, good: [noop] },
  body: { bad: ["Notification", "", 1, true, null], good: ["notification", "envelope"] },
  "destinations.allowHttp": { bad: NO_FLAGS, good: [true, false] },
  "destinations.allowPrivateNetworks": { bad: NO_FLAGS, good: [true, false] },
  "destinations.allow": {
    bad: [1, true, null, {}, "10.0.0.0/8", new Set(["a"]), Array(257).fill("10.0.0.1")],
    good: [[], Array(256).fill("10.0.0.1"), ["0.0.0.0/0", "::/0", "*.internal"]],
  },
  "destinations.ca": { bad: [1, true, null, {}, [], "pem"], good: [ROOT, Buffer.from(ROOT)] },
  "destinations.proxy": {
    bad: [
      ...[1, true, null, {}, [], "", "proxy", "proxy:3128", "ftp://proxy", "socks5://proxy:1080", "http://"],
      ...["http://proxy:0", "http://proxy:65536", "http://proxy/a", "http://proxy?a", "http://proxy#a"],
      ...["http://us%er@proxy", `http://${"p".repeat(2048)}`],
    ],
    good: [
      "http://proxy.internal:3128",
      "https://user:p%40ss@proxy",
      "http://[::1]:8080/",
      "http://10.0.0.1",
    ],
  },
  // Each of them needs the others: see test/outbound/client-certificate.test.ts.
  "destinations.clientCertificate.cert": { bad: [1, true, null, {}, [], "pem"], good: [] },
  "destinations.clientCertificate.key": { bad: [1, true, null, {}, [], "k".repeat(1_048_577)], good: [] },
  "destinations.clientCertificate.passphrase": { bad: [1, true, null, {}, [], "p".repeat(1_025)], good: [] },
  "destinations.resolve": { bad: NO_FUNCTIONS, good: [noop] },
  "delivery.concurrency": { bad: [...NO_NUMBERS, 0, 10_001], good: [1, 10_000] },
  "delivery.excerptCharacters": { bad: [...NO_NUMBERS, -1, 10_001], good: [0, 10_000] },
  "delivery.slowConcurrency": { bad: [...NO_NUMBERS, 0, 10_001], good: [1, 10_000] },
  "delivery.perEndpoint": { bad: [...NO_NUMBERS, 0, 10_001], good: [1, 10_000] },
  "delivery.perSecond": { bad: [...NO_NUMBERS, 0, "5", 10_001], good: [1, 10_000] },
  "delivery.slowAfterMs": { bad: [...NO_NUMBERS, 0], good: [1, Number.MAX_SAFE_INTEGER] },
  "delivery.deadlineMs": { bad: [...NO_NUMBERS, 0, 600_001], good: [1, 20_000] },
  "delivery.leaseMs": { bad: [...NO_NUMBERS, 0, 49_999, HOUR + 1], good: [50_000, HOUR] },
  "delivery.maxResponseBytes": { bad: [...NO_NUMBERS, 1_048_577], good: [0, 1_048_576] },
  "delivery.recoverEveryMs": { bad: [...NO_NUMBERS, 0, HOUR + 1], good: [1, HOUR] },
  "delivery.eventIdField": { bad: NO_FLAGS, good: [true, false] },
  "delivery.headers": { bad: NO_FUNCTIONS, good: [noop] },
  "delivery.send": { bad: NO_FUNCTIONS, good: [noop] },
  "retry.intervalsMs": {
    bad: [1, "1", null, {}, noop, [0], [-1], [1.5], ["1"], [null], Array(1), Array(101).fill(1)],
    good: [[], [1], Array(100).fill(1)],
  },
  "retry.everyMs": { bad: [...NO_NUMBERS, 0, 259_199], good: [259_200, Number.MAX_SAFE_INTEGER] },
  "retry.windowMs": {
    bad: [...NO_NUMBERS, 0, 900_000],
    good: [900_001, 8 * HOUR * 1000],
  },
  "retry.jitter": { bad: ["0", true, null, -0.1, 1.1, Number.NaN, {}], good: [0, 0.5, 1] },
  "retry.maxJitterMs": { bad: NO_NUMBERS, good: [0, Number.MAX_SAFE_INTEGER] },
  "signature.header": {
    bad: [
      ...["", "a b", "a:b", "é", "a\r\nb", "h".repeat(65), 1, null, ["a"]],
      ...["Host", "content-length", "Transfer-Encoding", "Content-Type", "User-Agent", "webhook-signature"],
    ],
    good: ["X-A-1", "X-Webhook-Signature"],
  },
  "signature.ed25519": {
    // The good one needs `standardWebhooks`: see test/signature/asymmetric.test.ts.
    bad: [1, true, null, {}, ED25519, new Set([ED25519]), Array(6).fill(ED25519), [ED25519]],
    good: [[]],
  },
  "signature.standardWebhooks": { bad: NO_FLAGS, good: [true, false] },
  checkData: { bad: NO_FLAGS, good: [true, false] },
  "endpoints.warnAfterMs": { bad: [...NO_NUMBERS, 0], good: [1, 96 * HOUR] },
  "endpoints.disableAfterMs": {
    bad: [...NO_NUMBERS, 0, 72 * HOUR - 1],
    good: [72 * HOUR, Number.MAX_SAFE_INTEGER],
  },
  "notify.warning": { bad: NO_FUNCTIONS, good: [noop] },
  "notify.disabled": { bad: NO_FUNCTIONS, good: [noop] },
  "notify.exhausted": { bad: NO_FUNCTIONS, good: [noop] },
  audit: { bad: NO_FUNCTIONS, good: [noop] },
  "notify.close": { bad: NO_FUNCTIONS, good: [noop] },
  "registrations.filters": { bad: NO_FLAGS, good: [true, false] },
  "registrations.headers": { bad: NO_FLAGS, good: [true, false] },
  "registrations.perSecond": { bad: NO_FLAGS, good: [true, false] },
  "retention.keepMs": { bad: NO_NUMBERS, good: [0, Number.MAX_SAFE_INTEGER] },
  "retention.events": { bad: NO_NUMBERS, good: [0, Number.MAX_SAFE_INTEGER] },
  "limits.webhooks": { bad: [...NO_NUMBERS, 0, 10_001], good: [1, 10_000] },
  "limits.enabledWebhooks": { bad: [...NO_NUMBERS, 0, 10_001], good: [1, 10_000] },
  "limits.requestBytes": { bad: [...NO_NUMBERS, 1023, 16_777_217], good: [1024, 16_777_216] },
  "limits.requestsPerMinute": { bad: NO_NUMBERS, good: [0, Number.MAX_SAFE_INTEGER] },
  "limits.repairsPerMinute": { bad: NO_NUMBERS, good: [0, Number.MAX_SAFE_INTEGER] },
  "limits.recoveredEventsPerMinute": { bad: NO_NUMBERS, good: [0, Number.MAX_SAFE_INTEGER] },
  "limits.entries": { bad: [...NO_NUMBERS, 0, 10_001], good: [1, 10_000] },
  "limits.notificationBytes": { bad: [...NO_NUMBERS, 1023, 16_777_217], good: [1024, 16_777_216] },
  "limits.auditEntries": { bad: [...NO_NUMBERS, 10_001], good: [0, 10_000] },
  "limits.hookMs": { bad: [...NO_NUMBERS, 0, 60_001], good: [1, 60_000] },
  clock: { bad: [null, 1, noop, {}, { ...systemClock, random: 1 }], good: [{ ...systemClock }] },
  telemetry: {
    bad: [null, 1, noop, {}, { record: noop }, { observe: noop }],
    good: [{ record: noop, observe: () => noop }],
  },
  awaitStorage: { bad: [null, 1, "no", {}], good: [true, false] },
  sealEvents: { bad: NO_FLAGS, good: [true, false] },
  keyStorage: { bad: [null, 1, "redis://", {}, noop], good: [required.storage] },
  logger: { bad: [null, 1, true, noop, {}, { info: noop, warn: noop, error: noop }], good: [console, false] },
};

/** Groups with members that must be there, for a change of one of them. */
const beside = (path: string, value: unknown): object => {
  const given = at(path, value);
  return path.startsWith("access.")
    ? { access: { ...access, ...(given as { access: object }).access } }
    : given;
};

describe("the options of createWebhooks", () => {
  it("are all in the table of this test", () => {
    expect(Object.keys(OPTIONS).sort()).toEqual(optionsOf(webhooksOptions).sort());
  });

  it.each(Object.keys(OPTIONS))(
    "%s: refused by its path where it cannot be used, and taken where it can",
    (path) => {
      const { bad = [], good = [] } = OPTIONS[path] ?? {};
      for (const value of bad) {
        const { field, message } = refusal(beside(path, value));
        expect(field).toBe(path);
        expect(message).toMatch(/^createWebhooks: /);
        expect(message).toContain(path);
      }
      for (const value of good) {
        // Functions are bound to their object, and so not the very ones that were given.
        const kept = typeof value === "function" ? ANY_FUNCTION : value;
        expect(readConfig({ ...required, ...beside(path, value) })).toMatchObject(at(path, kept));
        createWebhooks({ ...required, ...(beside(path, value) as object) });
      }
    },
  );

  it("have the defaults of the documents", () => {
    const { storage, access: hooks, events, clock, logger, ...rest } = readConfig(required);
    expect([storage, hooks, Object.keys(events).length, clock]).toEqual([
      required.storage,
      { authenticate: expect.any(Function), canRead: expect.any(Function) },
      50,
      systemClock,
    ]);
    expect(Object.keys(logger)).toEqual(["debug", "info", "warn", "error"]);
    expect(rest).toEqual({
      awaitStorage: true,
      sealEvents: false,
      body: "notification",
      checkData: true,
      resolveReference: undefined,
      destinations: {
        allowHttp: false,
        allowPrivateNetworks: false,
        allow: [],
        ca: undefined,
        resolve: undefined,
        proxy: undefined,
        clientCertificate: undefined,
      },
      delivery: {
        concurrency: 100,
        slowConcurrency: 400,
        perEndpoint: 5,
        perSecond: undefined,
        slowAfterMs: 500,
        recoverEveryMs: 50,
        deadlineMs: 15_000,
        leaseMs: 60_000,
        maxResponseBytes: 16_384,
        excerptCharacters: 0,
        eventIdField: false,
        headers: undefined,
        send: undefined,
      },
      retry: {
        intervalsMs: [0.25, 0.5, 1, 2, 4, 8].map((hours) => hours * HOUR),
        everyMs: 8 * HOUR,
        windowMs: 72 * HOUR,
        jitter: 0.1,
        maxJitterMs: 0.25 * HOUR,
      },
      signature: { header: "X-Service-Signature", standardWebhooks: false, ed25519: [] },
      endpoints: { warnAfterMs: 259_200_000, disableAfterMs: 345_600_000 },
      notify: { warning: undefined, disabled: undefined },
      registrations: { filters: false, headers: false, perSecond: false },
      retention: { keepMs: 72 * HOUR, events: 10_000 },
      limits: {
        auditEntries: 0,
        enabledWebhooks: 15,
        webhooks: 100,
        requestBytes: 65_536,
        requestsPerMinute: 600,
        repairsPerMinute: 6,
        recoveredEventsPerMinute: 100_000,
        entries: 100,
        notificationBytes: 262_144,
        hookMs: 5_000,
      },
    });
  });

  it("take undefined, of an option or of a whole group, for the default", () => {
    // Its functions are bound on each call, so they are never the same.
    const defaults = { ...readConfig(required), access: expect.any(Object) as unknown };
    for (const path of Object.keys(OPTIONS)) {
      const [group = ""] = path.split(".");
      if (group === "storage" || group === "access") continue;
      expect(readConfig({ ...required, [group]: undefined })).toEqual(defaults);
      expect(readConfig({ ...required, ...at(path, undefined) })).toEqual(defaults);
    }
  });

  it.each<[string, object]>([
    ["storage", { storage: undefined }],
    ["access.authenticate", { access: undefined }],
    ["access.authenticate", { access: { canRead: noop } }],
    ["access.canRead", { access: { authenticate: noop } }],
  ])("say so where %s is missing", (field, options) => {
    expect(refusal(options)).toMatchObject({ field, message: expect.stringContaining("is missing") });
  });

  it("refuse no options at all, and what is no object", () => {
    for (const options of [undefined, null, 1, "x", [], noop]) {
      expect(() => createWebhooks(options as unknown as WebhooksOptions)).toThrow(
        expect.objectContaining({ code: "invalid_option" }),
      );
    }
  });

  it.each([
    "access",
    "destinations",
    "delivery",
    "retry",
    "signature",
    "endpoints",
    "notify",
    "registrations",
    "retention",
    "limits",
  ])("refuse %s where it is no object", (group) => {
    for (const value of [null, 1, "x", true, [], noop]) {
      expect(refusal({ [group]: value })).toMatchObject({
        field: group,
        message: expect.stringContaining(`${group} must be an object`),
      });
    }
  });

  it.each<[string, unknown, string]>([
    ["storge", memoryStorage(), "storage"],
    ["Retry", {}, "retry"],
    ["access.autenticate", noop, "access.authenticate"],
    ["destinations.allowHTTP", true, "destinations.allowHttp"],
    ["delivery.concurency", 1, "delivery.concurrency"],
    ["retry.intervalMs", [1], "retry.intervalsMs"],
    ["signature.headers", "x", "signature.header"],
    ["endpoints.warnMs", 1, "endpoints.warnAfterMs"],
    ["notify.warn", noop, "notify.warning"],
    ["retention.event", 1, "retention.events"],
    ["limits.requestPerMinute", undefined, "limits.requestsPerMinute"],
  ])("refuse the unknown %s and name the nearest", (path, value, nearest) => {
    expect(refusal(beside(path, value))).toMatchObject({
      field: path,
      message: expect.stringContaining(`Did you mean '${nearest}'?`),
    });
  });

  it.each([
    [
      { retry: { colour: 1 } },
      /'retry\.colour'\. The options are retry\.intervalsMs, retry\.everyMs, .*retry\.maxJitterMs\.$/,
    ],
    [{ colour: 1 }, /'colour'\. The options are storage, access, events, .*telemetry\.$/],
    [{ ["k".repeat(1e6)]: 1 }, /'k{80}'\. The options are /],
  ])("refuse an unknown option that is near to none, and list them: %#", (options, message) => {
    expect(refusal(options).message).toMatch(message);
    expect(refusal(options).message).not.toContain("Did you mean");
  });

  it.each<[unknown, string]>([
    ["10.20.0.0/33", '"10.20.0.0/33"'],
    ["10.20.0.0/", '"10.20.0.0/"'],
    ["10.20.0/24", '"10.20.0/24"'],
    ["10.20.0.256", '"10.20.0.256"'],
    ["127.1", '"127.1"'],
    ["0x7f000001", '"0x7f000001"'],
    ["fd12::/129", '"fd12::/129"'],
    ["fe80::1%eth0", '"fe80::1%eth0"'],
    ["[fd12::1]", '"[fd12::1]"'],
    ["https://hooks.internal", '"https://hooks.internal"'],
    ["hooks.internal:8443", '"hooks.internal:8443"'],
    ["hooks.internal/path", '"hooks.internal/path"'],
    ["hooks..internal", '"hooks..internal"'],
    ["*", '"*"'],
    ["*.", '"*."'],
    ["a.*.internal", '"a.*.internal"'],
    [" hooks.internal", '" hooks.internal"'],
    ["", '""'],
    [`${"a".repeat(64)}.internal`, '"aaaa'],
    ["x".repeat(1e6), `"${"x".repeat(80)}"`],
    ["https://user:hunter2@hooks.internal", "a value of type string"],
    [7, "7"],
    [undefined, "a value of type undefined"],
    [["10.0.0.0/8"], "a value of type array"],
  ])("refuse the entry %j of destinations.allow, and show it", (entry, shown) => {
    const { field, message } = refusal({ destinations: { allow: ["10.0.0.0/8", entry] } });
    expect(field).toBe("destinations.allow[1]");
    expect(message).toContain(
      "createWebhooks: destinations.allow[1] must be a CIDR block or a host name (got ",
    );
    expect(message).toContain(`(got ${shown}`);
    expect(message).not.toContain("hunter2");
    expect(message.length).toBeLessThan(200);
  });

  it("refuse a hole in destinations.allow", () => {
    expect(refusal({ destinations: { allow: Array(1) } }).field).toBe("destinations.allow[0]");
  });

  it.each(["__proto__", "constructor", "toString", "hasOwnProperty"])("refuse a key '%s'", (key) => {
    const options = JSON.parse(`{"retry":{"${key}":{}}}`) as object;
    expect(refusal(options)).toMatchObject({ field: `retry.${key}` });
  });

  it("are checked against each other", () => {
    const message = (text: string): object =>
      expect.objectContaining({ message: expect.stringContaining(text) });
    expect(refusal({ delivery: { deadlineMs: 60_000, leaseMs: 139_999 } })).toEqual(message("140000"));
    expect(refusal({ delivery: { deadlineMs: 60_000 } })).toMatchObject({ field: "delivery.leaseMs" });
    expect(refusal({ endpoints: { warnAfterMs: 2, disableAfterMs: 1 } })).toMatchObject({
      field: "endpoints.disableAfterMs",
    });
    expect(refusal({ retry: { everyMs: 1, windowMs: 1001 } })).toMatchObject({ field: "retry.everyMs" });
    expect(refusal({ retry: { intervalsMs: [10], windowMs: 10 } })).toMatchObject({
      field: "retry.windowMs",
    });
    readConfig({
      ...required,
      delivery: { deadlineMs: 60_000, leaseMs: 140_000 },
      endpoints: { warnAfterMs: 1, disableAfterMs: 1 },
      retry: { intervalsMs: [9], everyMs: 1, windowMs: 10 },
    });
  });

  it("quote in an error what was given, unless it may be long or hold a secret", () => {
    const given = (value: unknown): string => refusal({ body: value }).message;
    expect(given("Envelope")).toContain('not "Envelope"');
    expect(given(7n)).toContain("not 7");
    expect(given(null)).toContain("not null");
    expect(given([])).toContain("type array");
    for (const secret of ["redis://:hunter2@localhost", "hunter2".repeat(10), { password: "hunter2" }]) {
      expect(refusal({ storage: secret }).message).not.toContain("hunter2");
    }
  });

  it("leave the object of the caller as it was, and do not notice when it changes later", async () => {
    const hooks = { ...access };
    const options = {
      storage: memoryStorage(),
      access: hooks,
      events: { "invoice.paid": "Invoice" },
      retry: { intervalsMs: [1000], jitter: 0 },
      limits: { enabledWebhooks: 1 },
    };
    const before = structuredClone({ ...options, storage: null, access: null });
    const { call, webhooks } = registrationApi(options as object);
    expect({ ...options, storage: null, access: null }).toEqual(before);
    for (const value of [options, options.access, options.events, options.retry.intervalsMs, options.limits])
      expect(Object.isFrozen(value)).toBe(false);

    options.limits.enabledWebhooks = 15;
    hooks.authenticate = () => null;
    Object.assign(options.events, { "patient.created": "Patient" });
    const json = { url: URL_1, event_types: ["invoice.paid"] };
    const statuses = [];
    for (let count = 0; count < 2; count++)
      statuses.push((await call("POST", "/v1/webhooks", { json })).status);
    expect(statuses).toEqual([201, 409]);
    await expect(
      webhooks.emit({ type: "patient.created", account: "acme", resource: { resourceType: "Patient" } }),
    ).rejects.toMatchObject({ code: "unknown_event_type" });
  });

  it("take instances of the host's own classes for access and notify, and call their methods as such", async () => {
    class Directory {
      readonly #keys = new Map([["s3cret", { id: "first", account: "acme" }]]);
      readonly table = "api_keys";
      authenticate(request: HttpRequest) {
        return this.#keys.get(bearer(request) ?? "");
      }
      canRead(): boolean {
        return this.#keys.size > 0;
      }
    }
    class Mailer {
      readonly #sent: unknown[] = [];
      readonly from = "postbell@example.com";
      warning(): number {
        return this.#sent.push("warning");
      }
    }
    class CachedDirectory extends Directory {}
    for (const access of [new Directory(), new CachedDirectory()]) {
      const { call } = registrationApi({ access, notify: new Mailer() });
      expect((await call("GET", "/v1/webhooks", { key: "s3cret" })).status).toBe(200);
      expect((await call("GET", "/v1/webhooks", { key: "other" })).status).toBe(401);
    }
    const { access, notify } = readConfig({ ...required, access: new Directory(), notify: new Mailer() });
    expect(access.canRead?.({ id: "first", account: "acme" }, { resourceType: "Patient" })).toBe(true);
    expect(notify.warning?.({} as never)).toBe(1);
    expect(notify.disabled).toBeUndefined();
  });

  it("refuse unknown keys of an instance where values are expected, and what is no function in any", () => {
    class Retry {
      readonly jiter = 0;
    }
    expect(refusal({ retry: new Retry() })).toMatchObject({ field: "retry.jiter" });
    class Mailer {
      readonly warning = "by mail";
    }
    expect(refusal({ notify: new Mailer() })).toMatchObject({ field: "notify.warning" });
    expect(refusal({ notify: Object.assign(Object.create(null), { warn: noop }) })).toMatchObject({
      field: "notify.warn",
    });
  });

  it("call a function beside other options as a method of the options", () => {
    const options = {
      ...required,
      records: new Map([["Patient/1", { resourceType: "Patient" }]]),
      resolveReference(reference: string) {
        return this.records.get(reference);
      },
    };
    const { records, ...accepted } = options;
    const bound = readConfig(Object.defineProperty(accepted, "records", { value: records }));
    expect(bound.resolveReference?.("Patient/1", { account: "acme", eventType: "patient.created" })).toEqual({
      resourceType: "Patient",
    });
  });

  it("may be frozen themselves, all the way down", () => {
    const deep = Object.freeze({
      ...required,
      retry: Object.freeze({ intervalsMs: Object.freeze([1000]) }),
      destinations: Object.freeze({}),
    });
    expect(Object.isFrozen(createWebhooks(deep))).toBe(true);
  });
});

describe("the options of memoryStorage", () => {
  const NAMES = [
    "webhooks",
    "pending",
    "pendingPerAccount",
    "bytes",
    "rememberedIds",
    "contentBytes",
  ] as const;

  it("are all in the list of this test, and have defaults", () => {
    expect(optionsOf(memoryStorageOptions)).toEqual(NAMES.map((name) => `limits.${name}`));
    expect(readOptions("memoryStorage", memoryStorageOptions, undefined)).toEqual({
      limits: {
        webhooks: 100_000,
        pending: 100_000,
        pendingPerAccount: 100_000,
        bytes: 268_435_456,
        rememberedIds: 250_000,
        contentBytes: 536_870_912,
      },
    });
  });

  it.each(NAMES)("limits.%s: refused by its path where it cannot be used, and taken where it can", (name) => {
    const least = name === "bytes" || name === "contentBytes" ? 1024 : 1;
    for (const value of [...NO_NUMBERS, 0, least - 1]) {
      const limits = { [name]: value } as MemoryStorageOptions["limits"];
      expect(() => memoryStorage({ limits })).toThrow(
        expect.objectContaining({ code: "invalid_option", field: `limits.${name}` }),
      );
    }
    for (const value of [least, Number.MAX_SAFE_INTEGER, undefined])
      memoryStorage({ limits: { [name]: value } });
  });

  it("refuse unknown keys at both levels", () => {
    const given = (options: object) => () => memoryStorage(options);
    expect(given({ limit: {} })).toThrow(/memoryStorage: there is no option 'limit'.*'limits'/);
    expect(given({ limits: { webhook: 1 } })).toThrow(/'limits\.webhook'.*'limits\.webhooks'/);
    memoryStorage({});
    memoryStorage({ limits: undefined });
    memoryStorage();
  });
});

describe("reading options", () => {
  it("gives for any input the table's keys with accepted values, or an error that names a path", () => {
    const table = {
      a: wholeNumber("ms", 5, { min: 1, max: 9 }),
      b: { c: wholeNumber("count", 0, { min: 0 }) },
    };
    const key = fc.oneof(fc.constantFrom("a", "b", "c"), fc.string());
    const input = fc.oneof(
      fc.dictionary(key, fc.oneof(fc.nat(12), fc.dictionary(key, fc.integer()))),
      fc.anything(),
    );
    const isSound = (given: unknown): boolean => {
      try {
        const { a, b } = readOptions("factory", table, given);
        return a >= 1 && a <= 9 && b.c >= 0;
      } catch (error) {
        return isPostbellError(error, "invalid_option");
      }
    };
    fc.assert(fc.property(input, isSound));
    expect(isSound({ a: 9, b: { c: 1 } })).toBe(true);
  });

  it("never repeats the value of an option that is named like a secret, whatever its table", async () => {
    const tables = await loadTables();
    const secret = "hunter2";
    const findRepeated = ([name, table]: readonly [string, OptionTable]): readonly string[] =>
      optionsOf(table)
        .filter((path) => /secret|key|token|password|passphrase/i.test(path))
        .filter((path) =>
          [secret, `${secret}\n`, [secret], [`${secret}\n`]].some((value) => {
            try {
              readOptions("factory", table, at(path, value));
              return false;
            } catch (error) {
              return String(error).includes(secret);
            }
          }),
        )
        .map((path) => `${name}: ${path}`);
    expect(tables.length).toBeGreaterThan(15);
    expect(tables.flatMap(findRepeated)).toEqual([]);
    // A table that is not exported.
    const inner = optionOf<string | undefined>("a token of 40 characters", () => false, undefined);
    expect(findRepeated(["inner", { group: { apiToken: inner } }])).toEqual([]);
  });

  it("knows a table without options", () => {
    expect(readOptions("factory", {}, {})).toEqual({});
    expect(() => readOptions("factory", {}, { a: 1 })).toThrow("factory: there is no option 'a'.");
  });
});
