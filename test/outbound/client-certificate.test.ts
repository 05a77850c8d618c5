import { createPrivateKey, generateKeyPairSync, X509Certificate } from "node:crypto";
import type { TLSSocket } from "node:tls";
import { afterEach, beforeAll, describe, expect, it } from "vitest";
import { createContent } from "../../src/content/index.js";
import { createWebhooks } from "../../src/index.js";
import { createOutboundClient } from "../../src/outbound/client.js";
import { readClientCertificate } from "../../src/outbound/destination-options.js";
import { parseProxy } from "../../src/outbound/proxy.js";
import { manualClock } from "../../src/testing/manual-clock.js";
import { memoryStorage } from "../../storage/memory/index.js";
import { type Certificate, issue, makeAuthority } from "../support/certificates.js";
import { startProxy } from "../support/connect-proxy.js";
import { type Endpoint, reply, startEndpoint } from "../support/https-endpoint.js";

const NAME = "hooks.example.com";
const PASSPHRASE = "open sesame";

let authority: Certificate;
let certificate: Certificate;
let client: Certificate;
const cleanUps: (() => Promise<void>)[] = [];

beforeAll(async () => {
  authority = await makeAuthority();
  certificate = await issue({ authority, names: [NAME, "127.0.0.1"] });
  client = await issue({ authority, names: ["sender.example.com"], forClients: true });
});

afterEach(async () => {
  await Promise.all(cleanUps.splice(0).map((cleanUp) => cleanUp()));
});

const encrypt = (key: string): string =>
  String(
    createPrivateKey(key).export({
      format: "pem",
      type: "pkcs8",
      cipher: "aes-256-cbc",
      passphrase: PASSPHRASE,
    }),
  );

/** An endpoint that accepts only clients with a certificate of the authority, and notes them. */
async function strictEndpoint(): Promise<Endpoint & { readonly names: (string | undefined)[] }> {
  const names: (string | undefined)[] = [];
  const endpoint = await startEndpoint({
    certificate,
    tlsOptions: { requestCert: true, rejectUnauthorized: true, ca: authority.cert },
    respond: (socket) => {
      const { raw } = (socket as TLSSocket).getPeerCertificate();
      names.push(new X509Certificate(raw).subject);
      socket.write(reply(204));
    },
  });
  cleanUps.push(endpoint.close);
  return { ...endpoint, names };
}

type Given = Parameters<typeof readClientCertificate>[0];

function sender(given: Partial<Given>, proxyUrl?: string) {
  const read = readClientCertificate({ cert: undefined, key: undefined, passphrase: undefined, ...given });
  const outbound = createOutboundClient({
    clock: manualClock(0),
    policy: { allowPrivateNetworks: true },
    ca: authority.cert,
    resolve: async () => ["127.0.0.1"],
    clientCertificate: read && "cert" in read ? read : undefined,
    proxy: parseProxy(proxyUrl),
  });
  cleanUps.push(() => outbound.close());
  return (port: number) =>
    outbound.send({
      url: `https://${NAME}:${port}/`,
      method: "POST",
      headers: {},
      body: Buffer.from("{}"),
      deadlineMs: 15_000,
      maxBodyBytes: 1_024,
    });
}

describe("destinations.clientCertificate", () => {
  it.each<[string, () => Partial<Given>]>([
    ["in PEM", () => client],
    ["as bytes", () => ({ cert: Buffer.from(client.cert), key: Buffer.from(client.key) })],
    [
      "with an encrypted key",
      () => ({ cert: client.cert, key: encrypt(client.key), passphrase: PASSPHRASE }),
    ],
    [
      "followed by its authority",
      () => ({ cert: `# own\n${client.cert}\n${authority.cert}`, key: client.key }),
    ],
  ])("%s opens an endpoint that requires one, over one connection", async (_, given) => {
    const endpoint = await strictEndpoint();
    const send = sender(given());
    for (let count = 0; count < 2; count++) expect(await send(endpoint.port)).toMatchObject({ status: 204 });
    expect(endpoint.names).toEqual(["CN=sender.example.com", "CN=sender.example.com"]);
    expect(endpoint.connections()).toBe(1);
  });

  it("is not there by default: such an endpoint then refuses the connection", async () => {
    const endpoint = await strictEndpoint();
    expect(await sender({})(endpoint.port)).toMatchObject({ kind: "tls" });
    expect(endpoint.requests).toEqual([]);
  });

  it("reaches the endpoint through a proxy, which never gets it", async () => {
    const endpoint = await strictEndpoint();
    const proxy = await startProxy({
      certificate,
      tlsOptions: { requestCert: true, rejectUnauthorized: false, ca: authority.cert },
    });
    cleanUps.push(proxy.close);
    const send = sender(client, `https://127.0.0.1:${proxy.port}`);
    expect(await send(endpoint.port)).toMatchObject({ status: 204 });
    expect(endpoint.names).toEqual(["CN=sender.example.com"]);
    expect(proxy.clients).toEqual([undefined]);
  });
});

describe("embeds.destinations.clientCertificate", () => {
  it("is no option: other sites must not learn who the service is", () => {
    const options = {
      storage: memoryStorage(),
      site: { name: "Clinic", url: "https://www.example.org" },
      authenticate: () => null,
      users: [],
    };
    const destinations = { clientCertificate: client } as object;
    expect(() => createContent({ ...options, embeds: { destinations } })).toThrow(
      expect.objectContaining({ field: "embeds.destinations.clientCertificate" }),
    );
  });
});

describe("createWebhooks refuses destinations.clientCertificate", () => {
  const refusal = (clientCertificate: object): { field: string; message: string } => {
    try {
      createWebhooks({
        storage: memoryStorage(),
        access: { authenticate: () => null, canRead: () => true },
        destinations: { clientCertificate: clientCertificate as { cert: string; key: string } },
      });
    } catch (error) {
      return error as { field: string; message: string };
    }
    throw new Error("The options were accepted.");
  };
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const foreign = String(privateKey.export({ format: "pem", type: "pkcs8" }));

  it.each<[string, () => object, part: string, message: RegExp]>([
    ["without a key", () => ({ cert: client.cert }), "key", /is missing/],
    ["without a certificate", () => ({ key: client.key }), "cert", /is missing/],
    ["with a passphrase alone", () => ({ passphrase: PASSPHRASE }), "cert", /is missing/],
    [
      "with the key of another certificate",
      () => ({ ...client, key: foreign }),
      "key",
      /the key of the first/,
    ],
    [
      "with its authority first",
      () => ({ ...client, cert: `${authority.cert}\n${client.cert}` }),
      "key",
      /of the first/,
    ],
    [
      "with certificates on one line",
      () => ({ ...client, cert: authority.cert.trim() + client.cert }),
      "cert",
      /lines of its own/,
    ],
    [
      "with an encrypted key alone",
      () => ({ ...client, key: encrypt(client.key) }),
      "passphrase",
      /is encrypted/,
    ],
    [
      "with another passphrase",
      () => ({ ...client, key: encrypt(client.key), passphrase: "wrong" }),
      "passphrase",
      /does not decrypt/,
    ],
    [
      "with an empty passphrase",
      () => ({ ...client, key: encrypt(client.key), passphrase: "" }),
      "passphrase",
      /decrypt/,
    ],
    ["with garbage for a key", () => ({ ...client, key: "s3cr3t" }), "key", /private key in PEM/],
    ["with a certificate for a key", () => ({ ...client, key: client.cert }), "key", /private key in PEM/],
    ["with garbage for a certificate", () => ({ ...client, cert: "s3cr3t" }), "cert", /BEGIN CERTIFICATE/],
    ["with a key beyond 1 MiB", () => ({ ...client, key: client.key.repeat(8_000) }), "key", /1048576 bytes/],
    [
      "with a certificate beyond 1 MiB",
      () => ({ ...client, cert: client.cert.repeat(8_000) }),
      "cert",
      /1048576/,
    ],
    [
      "with a number for a passphrase",
      () => ({ ...client, passphrase: 5318008 }),
      "passphrase",
      /characters\.$/,
    ],
    ["with a misspelt part", () => ({ ...client, passphrse: "" }), "passphrse", /Did you mean/],
  ])("%s", (_, given, part, message) => {
    const refused = refusal(given());
    const field = `destinations.clientCertificate.${part}`;
    expect(refused).toMatchObject({ code: "invalid_option", field, message: expect.stringMatching(message) });
    expect(refused.message).toContain(field);
    expect(refused.message).not.toMatch(/s3cr3t|5318008|BEGIN (?:ENCRYPTED )?PRIVATE/);
  });
});
