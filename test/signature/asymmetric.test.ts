import { generateKeyPairSync, type KeyObject, verify } from "node:crypto";
import { describe, expect, it } from "vitest";
import { createWebhooks } from "../../src/index.js";
import { createReceiver } from "../../src/receiver/index.js";
import {
  asymmetricSignature,
  readPublicKey,
  readSigningKey,
  verifyAsymmetricSignature,
} from "../../src/signature/asymmetric.js";
import { verifySignature } from "../../src/signature/signature.js";
import { memoryStorage } from "../../storage/memory/index.js";

/** The key of RFC 8037 appendix A, in the forms that a host may have. */
const SEED = Buffer.from("nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A", "base64url");
const X = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo";
const PUBLIC = Buffer.from(X, "base64url");
const THUMBPRINT = "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k";
const PEM = `-----BEGIN PRIVATE KEY-----\n${Buffer.concat([
  Buffer.from("302e020100300506032b657004220420", "hex"),
  SEED,
]).toString("base64")}\n-----END PRIVATE KEY-----\n`;
const WHSK = `whsk_${SEED.toString("base64")}`;
const WHPK = `whpk_${PUBLIC.toString("base64")}`;

const pemOf = (key: KeyObject, options: object = {}): string =>
  String(key.export({ format: "pem", type: "pkcs8", ...options }));

const optionsWith = (signature: object) => () =>
  createWebhooks({
    storage: memoryStorage(),
    access: { authenticate: () => null, canRead: () => true },
    signature,
  });

describe("a private key", () => {
  it.each([
    ["in PEM", PEM],
    ["in PEM with CRLF", PEM.replaceAll("\n", "\r\n")],
    ["as whsk_ and its seed", WHSK],
    ["as whsk_ and both halves", `whsk_${Buffer.concat([SEED, PUBLIC]).toString("base64")}`],
  ])("%s gives the public key and thumbprint of RFC 8037", (_, given) => {
    const { jwk } = readSigningKey(given);
    expect(jwk).toEqual({ kty: "OKP", crv: "Ed25519", x: X, kid: THUMBPRINT, use: "sig", alg: "EdDSA" });
  });

  const other = generateKeyPairSync("ed25519");
  it.each<[string, string]>([
    ["of another algorithm", pemOf(generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey)],
    ["of X25519", pemOf(generateKeyPairSync("x25519").privateKey)],
    ["that is encrypted", pemOf(other.privateKey, { cipher: "aes-256-cbc", passphrase: "s3cr3t" })],
    ["that is public", String(other.publicKey.export({ format: "pem", type: "spki" }))],
    ["that is public, as whpk_", WHPK],
    ["that is a secret for HMAC", `whsec_${SEED.toString("base64")}`],
    ["of 31 bytes", `whsk_${SEED.subarray(1).toString("base64")}`],
    ["of 64 bytes that do not fit", `whsk_${Buffer.concat([SEED, SEED]).toString("base64")}`],
    ["that is no Base64", `whsk_${"!".repeat(44)}`],
    ["that is empty", "whsk_"],
    ["that is too long", `whsk_${"A".repeat(2_000_000)}`],
  ])("%s is refused by its path, and not repeated", (_, given) => {
    const refused = optionsWith({ standardWebhooks: true, ed25519: [PEM, given] });
    expect(refused).toThrow(
      expect.objectContaining({ code: "invalid_option", field: "signature.ed25519[1]" }),
    );
    expect(refused).toThrow(
      /must be a private Ed25519 key: PEM \(PKCS#8, not encrypted\), or 'whsk_' and Base64\.$/,
    );
  });

  it("is refused twice, and without standardWebhooks", () => {
    expect(optionsWith({ standardWebhooks: true, ed25519: [PEM, WHSK] })).toThrow(
      expect.objectContaining({ code: "invalid_option", field: "signature.ed25519[1]" }),
    );
    expect(optionsWith({ ed25519: [PEM] })).toThrow(/signature\.ed25519 needs signature\.standardWebhooks/);
    expect(optionsWith({ standardWebhooks: true, ed25519: Array(6).fill(PEM) })).toThrow(/at most 5/);
    expect(optionsWith({ ed25519: [] })).not.toThrow();
  });
});

const id = "msg_1";
const now = Date.UTC(2026, 0, 1);
const timestamp = now / 1000;
const body = Buffer.from('{"id":"1"}');
const key = readSigningKey(WHSK);
const publicKey = readPublicKey(WHPK) as KeyObject;
const v1a = asymmetricSignature({ key, id, timestamp, body });

describe("asymmetricSignature", () => {
  it("signs the id, the time and the body, joined by full stops", () => {
    const [version, encoded = ""] = v1a.split(",");
    expect(version).toBe("v1a");
    const signed = Buffer.from(`msg_1.${timestamp}.{"id":"1"}`);
    expect(verify(null, signed, publicKey, Buffer.from(encoded, "base64"))).toBe(true);
  });
});

describe("verifyAsymmetricSignature", () => {
  const check = (changes: Partial<Parameters<typeof verifyAsymmetricSignature>[0]> = {}) =>
    verifyAsymmetricSignature({
      ...{ body, id, timestamp: String(timestamp), signature: v1a },
      ...{ keys: [publicKey], toleranceMs: 300_000, now, ...changes },
    });
  const foreign = readPublicKey(
    `whpk_${Buffer.from(readSigningKey(pemOf(generateKeyPairSync("ed25519").privateKey)).jwk.x, "base64url").toString("base64")}`,
  ) as KeyObject;

  it.each<[string, Parameters<typeof check>[0]]>([
    ["the signature alone", {}],
    ["a body as text", { body: body.toString() }],
    ["another signature before it", { signature: `v1,${"A".repeat(43)}= ${v1a}` }],
    ["one by a foreign key before it", { signature: `v1a,${"A".repeat(86)}== ${v1a}` }],
    ["several keys", { keys: [foreign, publicKey] }],
  ])("accepts %s", (_, changes) => {
    expect(check(changes)).toEqual({ ok: true, timestamp });
  });

  it.each<[string, Parameters<typeof check>[0], string]>([
    ["no id", { id: undefined }, "missing_header"],
    ["an empty signature", { signature: "" }, "missing_header"],
    ["no time", { timestamp: undefined }, "missing_header"],
    ["a time that is no number", { timestamp: "1e9" }, "malformed_header"],
    ["an endless id", { id: "a".repeat(257) }, "malformed_header"],
    ["an endless header", { signature: "v1a, ".repeat(1_000) }, "malformed_header"],
    [
      "more signatures than a sender has keys",
      { signature: Array(6).fill(v1a).join(" ") },
      "malformed_header",
    ],
    ["another body", { body: Buffer.from("{}") }, "no_match"],
    ["another id", { id: "msg_2" }, "no_match"],
    ["another time", { timestamp: String(timestamp + 1) }, "no_match"],
    ["another key", { keys: [foreign] }, "no_match"],
    ["the signature under the name of the HMAC", { signature: v1a.replace("v1a", "v1") }, "no_match"],
    ["an old signature", { now: now + 301_000 }, "timestamp_out_of_tolerance"],
  ])("refuses %s", (_, changes, code) => {
    expect(check(changes)).toEqual({ ok: false, code });
  });
});

describe("a public key in place of a secret", () => {
  it.each([
    ["as whpk_", WHPK],
    ["in PEM", String(publicKey.export({ format: "pem", type: "spki" }))],
    ["in PEM after a line break", `\n${String(publicKey.export({ format: "pem", type: "spki" }))}`],
    ["in a certificate", "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"],
    ["as a JSON Web Key", JSON.stringify(key.jwk)],
    ["as a JSON Web Key Set, indented", `\n${JSON.stringify({ keys: [key.jwk] }, null, 2)}`],
    ["as a list of JSON Web Keys", JSON.stringify([key.jwk])],
    ["in an X.509 certificate", "-----BEGIN X509 CERTIFICATE-----\nMIIB\n"],
    ["in a trusted certificate", "-----BEGIN TRUSTED CERTIFICATE-----\nMIIB\n"],
    ["of OpenSSH with ECDSA", "ecdsa-sha2-nistp256 AAAAE2VjZHNh clinic@example"],
    ["of OpenSSH with DSA", "ssh-dss AAAAB3NzaC1kc3M= clinic@example"],
    ["of OpenSSH on a security key", "sk-ssh-ed25519@openssh.com AAAAGnNr clinic@example"],
    ["of OpenSSH", "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5 clinic@example"],
  ])("%s verifies nothing: everybody could sign with it", (_, secrets) => {
    expect(() => verifySignature({ body, header: "t=1, s=0", secrets })).toThrow(
      expect.objectContaining({ code: "invalid_argument", field: "secrets" }),
    );
    expect(() => createReceiver({ secrets: [WHSK, secrets], onEvent: () => {} })).toThrow(
      expect.objectContaining({ code: "invalid_option", field: "secrets" }),
    );
  });

  it.each(["{kty}", "sk-live_0123456789", PEM, `[${"[".repeat(100_000)}`])(
    "does not refuse a secret that only begins like one (%#)",
    (secrets) => {
      expect(() => verifySignature({ body, header: "t=1, s=0", secrets })).not.toThrow();
    },
  );
});

describe("readPublicKey", () => {
  it.each([
    ["whpk_"],
    [WHSK],
    [WHPK.slice(0, -6)],
    [`${WHPK}AAAA`],
    [PEM],
    [undefined],
    ["whpk_".repeat(1e6)],
  ])("refuses all but whpk_ and 32 bytes: %#", (given) => {
    expect(readPublicKey(given)).toBeUndefined();
  });

  it.each(
    // Source: Cremers and Jackson, "Prime, Order Please!", table 1: orders 1, 2, 4 and 8.
    [
      "0000000000000000000000000000000000000000000000000000000000000000",
      "0100000000000000000000000000000000000000000000000000000000000000",
      "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
      "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
      "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
      "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
      "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    ].flatMap((low) => [
      low,
      `${low.slice(0, 62)}${(Number.parseInt(low.slice(62), 16) | 128).toString(16)}`,
    ]),
  )("refuses the point %s, for which anyone can sign", (encoded) => {
    const publicKeys = `whpk_${Buffer.from(encoded, "hex").toString("base64")}`;
    expect(readPublicKey(publicKeys)).toBeUndefined();
    expect(() => createReceiver({ publicKeys: [WHPK, publicKeys], onEvent: () => {} })).toThrow(
      expect.objectContaining({ code: "invalid_option", field: "publicKeys" }),
    );
  });

  it("reads the x of a JSON Web Key, too", () => {
    expect(readPublicKey(`whpk_${X}`)?.equals(publicKey)).toBe(true);
  });
});
