import { createHmac } from "node:crypto";
import fc from "fast-check";
import { Webhook } from "standardwebhooks";
import { describe, expect, it } from "vitest";
import {
  newSecret,
  SIGNATURE_HEADER,
  signatureHeader,
  standardHeaders,
  type VerifyInput,
  verifySignature,
} from "../../src/signature/signature.js";
import golden from "../data/signature-vectors.json" with { type: "json" };

interface Vector {
  name: string;
  secret: string;
  timestamp: number;
  bodyBase64?: string;
  bodyRepeat?: { text: string; times: number };
  signature: string;
  standardSignature?: string;
}

const vectors: readonly Vector[] = golden.vectors;
const bytesOf = ({ bodyBase64, bodyRepeat }: Vector): Buffer =>
  bodyRepeat === undefined
    ? Buffer.from(bodyBase64 ?? "", "base64")
    : Buffer.from(bodyRepeat.text.repeat(bodyRepeat.times));

const secret = newSecret();
const t = 1_735_689_600;
const body = Buffer.from('{"id":"1","event":{}}');
const header = signatureHeader({ secret, timestamp: t, body });
const hex = header.slice(-64);
const verify = (changes: Partial<VerifyInput> = {}) =>
  verifySignature({ body, header, secrets: secret, now: t * 1000, ...changes });

describe("a new secret", () => {
  it("is whsec_ and 256 bits in Base64, another one each time", () => {
    const secrets = Array.from({ length: 100 }, newSecret);
    expect(new Set(secrets).size).toBe(100);
    for (const made of secrets) {
      expect(made).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
      expect(Buffer.from(made.slice(6), "base64")).toHaveLength(32);
    }
  });
});

describe.each(vectors.map((vector) => [vector.name, vector] as const))(
  "openssl's signature of: %s",
  (_, vector) => {
    const bytes = bytesOf(vector);

    it("is what the header carries", () => {
      const made = signatureHeader({ secret: vector.secret, timestamp: vector.timestamp, body: bytes });
      expect(made).toBe(`t=${vector.timestamp}, s=${vector.signature}`);
    });

    it("is accepted", () => {
      const result = verifySignature({
        body: bytes,
        header: `t=${vector.timestamp}, s=${vector.signature}`,
        secrets: vector.secret,
        now: vector.timestamp * 1000,
      });
      expect(result).toEqual({ ok: true, timestamp: vector.timestamp });
    });
  },
);

describe.each(
  vectors
    .filter((vector) => vector.standardSignature !== undefined)
    .map((vector) => [vector.name, vector] as const),
)("openssl's Standard Webhooks signature of: %s", (_, vector) => {
  it("is what the headers carry", () => {
    expect(
      standardHeaders({ ...vector, secrets: [vector.secret], id: golden.standardId, body: bytesOf(vector) }),
    ).toEqual({
      "webhook-id": golden.standardId,
      "webhook-timestamp": String(vector.timestamp),
      "webhook-signature": vector.standardSignature,
    });
  });
});

describe("verifySignature", () => {
  it("accepts what signatureHeader made, for any body and secret", () => {
    const bytes = fc.uint8Array({ maxLength: 300 });
    fc.assert(
      fc.property(
        bytes,
        fc.string({ minLength: 1 }),
        fc.integer({ min: 0, max: 2 ** 40 }),
        (payload, key, at) => {
          fc.pre(key !== "whsec_");
          const made = signatureHeader({ secret: key, timestamp: at, body: payload });
          expect(verifySignature({ body: payload, header: made, secrets: key, now: at * 1000 })).toEqual({
            ok: true,
            timestamp: at,
          });
        },
      ),
    );
  });

  it("refuses the body with any one bit flipped", () => {
    fc.assert(
      fc.property(fc.nat(body.length * 8 - 1), (bit) => {
        const forged = Uint8Array.from(body);
        forged[bit >> 3] = (forged[bit >> 3] ?? 0) ^ (1 << (bit & 7));
        expect(verify({ body: forged })).toEqual({ ok: false, code: "no_match" });
      }),
    );
  });

  it("refuses a signature that differs in its last or first digit only", () => {
    const other = (digit: string): string => (digit === "0" ? "1" : "0");
    const last = `t=${t}, s=${hex.slice(0, 63)}${other(hex.slice(63))}`;
    const first = `t=${t}, s=${other(hex.slice(0, 1))}${hex.slice(1)}`;
    expect(verify({ header: last })).toEqual({ ok: false, code: "no_match" });
    expect(verify({ header: first })).toEqual({ ok: false, code: "no_match" });
  });

  it("takes a string for its UTF-8 bytes", () => {
    const text = "Zoë 文 🩺";
    const made = signatureHeader({ secret, timestamp: t, body: Buffer.from(text) });
    expect(verify({ body: text, header: made })).toMatchObject({ ok: true });
  });

  it("reads a view on a larger buffer within its bounds", () => {
    const pool = Buffer.concat([Buffer.from("before"), body, Buffer.from("after")]);
    expect(verify({ body: pool.subarray(6, 6 + body.length) })).toMatchObject({ ok: true });
    expect(verify({ body: new Uint8Array(pool.buffer, pool.byteOffset + 6, body.length) })).toMatchObject({
      ok: true,
    });
  });

  it("accepts the time only as it was signed", () => {
    expect(verify({ header: `t=0${t}, s=${hex}` })).toEqual({ ok: false, code: "no_match" });
    const padded = createHmac("sha256", secret).update(`0${t}.`).update(body).digest("hex");
    expect(verify({ header: `t=0${t}, s=${padded}` })).toEqual({ ok: true, timestamp: t });
  });

  it.each([
    ["without the blank", `t=${t},s=${hex}`],
    ["in the other order", `s=${hex}, t=${t}`],
    ["with blanks around", `  t=${t}  ,  s=${hex}  `],
    ["with other elements", `v=2, t=${t}, x, =, s=${hex}, ts=9, v1=${hex}, `],
  ])("accepts the header %s", (_, given) => {
    expect(verify({ header: given })).toEqual({ ok: true, timestamp: t });
  });

  it.each([undefined, null, "", "   "])("says that the header is missing: %j", (given) => {
    expect(verify({ header: given })).toEqual({ ok: false, code: "missing_header" });
  });

  it.each([
    ["only a time", `t=${t}`],
    ["only a signature", `s=${hex}`],
    ["upper-case digits", `t=${t}, s=${hex.toUpperCase()}`],
    ["63 digits", `t=${t}, s=${hex.slice(1)}`],
    ["65 digits", `t=${t}, s=${hex}0`],
    ["no hexadecimal", `t=${t}, s=${"g".repeat(64)}`],
    ["64 characters of more bytes", `t=${t}, s=${"é".repeat(64)}`],
    ["an invalid time", `t=now, s=${hex}`],
    ["a negative time", `t=-1, s=${hex}`],
    ["a fraction", `t=${t}.0, s=${hex}`],
    ["an exponent", `t=1e9, s=${hex}`],
    ["an empty time", `t=, s=${hex}`],
    ["a time of a hundred digits", `t=${"9".repeat(100)}, s=${hex}`],
    ["two signatures, one right", `t=${t}, s=${hex}, s=${"0".repeat(64)}`],
    ["the same signature twice", `t=${t}, s=${hex}, s=${hex}`],
    ["two times", `t=${t}, t=${t}, s=${hex}`],
    ["upper-case prefixes", `T=${t}, S=${hex}`],
    ["another separator", `t=${t}; s=${hex}`],
    ["64 KiB of commas", ",".repeat(65_536)],
    ["64 KiB of blanks in a value", `t=${t}, s=${" ".repeat(65_536)}x`],
  ])("says that the header is malformed: %s", (_, given) => {
    expect(verify({ header: given })).toEqual({ ok: false, code: "malformed_header" });
  });

  it("never throws for anything a sender may write into the header", () => {
    const piece = fc.oneof(fc.string(), fc.constantFrom("t=", "s=", ",", hex, String(t), " "));
    fc.assert(
      fc.property(
        fc.array(piece).map((pieces) => pieces.join("")),
        (given) => {
          expect(verify({ header: given, secrets: "another" }).ok).toBe(false);
        },
      ),
    );
  });

  it.each([
    [-300, true],
    [300, true],
    [-301, false],
    [301, false],
  ])("with a clock that is off by %i s: %s", (seconds, isAccepted) => {
    const expected = isAccepted
      ? { ok: true, timestamp: t }
      : { ok: false, code: "timestamp_out_of_tolerance" };
    expect(verify({ now: (t + seconds) * 1000 })).toEqual(expected);
  });

  it("counts the milliseconds of the running second for the sender", () => {
    expect(verify({ now: (t + 300) * 1000 + 999 })).toMatchObject({ ok: true });
  });

  it("takes another tolerance, also none", () => {
    expect(verify({ toleranceMs: 0 })).toMatchObject({ ok: true });
    expect(verify({ toleranceMs: 0, now: (t + 1) * 1000 })).toMatchObject({ ok: false });
    expect(verify({ toleranceMs: 10_000, now: (t + 11) * 1000 })).toMatchObject({ ok: false });
    expect(verify({ toleranceMs: Number.POSITIVE_INFINITY, now: 0 })).toMatchObject({ ok: true });
  });

  it("tells nothing about the time of a signature that does not match", () => {
    expect(verify({ secrets: "another", now: 0 })).toEqual({ ok: false, code: "no_match" });
  });

  it("compares with the system's time when it is given none", () => {
    expect(verify({ now: undefined })).toEqual({ ok: false, code: "timestamp_out_of_tolerance" });
  });

  it.each([
    ["secret", "verifySignature() has no field 'secret'; did you mean 'secrets'?"],
    ["tolerance", "verifySignature() has no field 'tolerance'; did you mean 'toleranceMs'?"],
    ["rawBody", "verifySignature() has no field 'rawBody'; did you mean 'body'?"],
    [
      "key",
      "verifySignature() has no field 'key'; it takes 'body', 'header', 'secrets', 'toleranceMs', 'now'.",
    ],
  ])("refuses the key '%s', and names the one that was meant", (key, message) => {
    const input = { body: "{}", header: "t=1, s=2", secrets: "whsec_x", [key]: "x" };
    expect(() => verifySignature(input)).toThrow(
      expect.objectContaining({ code: "invalid_argument", field: key, message }),
    );
  });

  it("names 'secrets' where only 'secret' is given", () => {
    const input = { body: "{}", header: "t=1, s=2", secret: "whsec_x" } as never;
    expect(() => verifySignature(input)).toThrow("did you mean 'secrets'?");
  });

  it("accepts any of several secrets, at any place", () => {
    expect(verify({ secrets: [secret, "old"] })).toMatchObject({ ok: true });
    expect(verify({ secrets: ["new", secret] })).toMatchObject({ ok: true });
    expect(verify({ secrets: ["new", "old"] })).toEqual({ ok: false, code: "no_match" });
  });

  it.each([
    ["an empty secret", { secrets: "" }, "invalid_argument", "secrets"],
    ["a prefix without a secret", { secrets: "whsec_" }, "invalid_argument", "secrets"],
    ["no secret", { secrets: [] }, "invalid_argument", "secrets"],
    ["an empty one among several", { secrets: [secret, ""] }, "invalid_argument", "secrets[1]"],
    ["a secret that is no string", { secrets: [undefined] }, "invalid_argument", "secrets[0]"],
    ["secrets that are no list", { secrets: 7 }, "invalid_argument", "secrets"],
    ["a tolerance that is no number", { toleranceMs: Number.NaN }, "invalid_argument", "toleranceMs"],
    ["a negative tolerance", { toleranceMs: -1 }, "invalid_argument", "toleranceMs"],
    ["a tolerance in words", { toleranceMs: "300" }, "invalid_argument", "toleranceMs"],
    ["a time that is no number", { now: Number.NaN }, "invalid_argument", "now"],
    ["a parsed body", { body: { id: "1" } }, "raw_body_unavailable", "body"],
    ["no body", { body: undefined }, "raw_body_unavailable", "body"],
  ])("throws for %s, which is the host's mistake", (_, changes, code, field) => {
    const call = () => verify(changes as unknown as Partial<VerifyInput>);
    expect(call).toThrow(expect.objectContaining({ name: "PostbellError", code, field }));
  });
});

describe("signatureHeader", () => {
  it("is for the header that the interface names", () => {
    expect(SIGNATURE_HEADER).toBe("X-Service-Signature");
  });

  it("refuses an empty secret", () => {
    for (const empty of ["", "whsec_"]) {
      const call = () => signatureHeader({ secret: empty, timestamp: t, body });
      expect(call).toThrow(expect.objectContaining({ code: "invalid_argument", field: "secret" }));
    }
  });

  it("differs for each time, so each attempt has its own", () => {
    expect(signatureHeader({ secret, timestamp: t + 1, body }).slice(-64)).not.toBe(hex);
  });
});

describe("standardHeaders", () => {
  const id = "b3e1a4c6-7a1e-4d52-9d5e-0c8f2f3a6b71";

  it("are accepted by the standardwebhooks library, and equal its own", () => {
    // The library compares with the system's time, which only its verification has.
    const timestamp = Math.floor(Date.now() / 1000);
    const library = new Webhook(secret);
    fc.assert(
      fc.property(fc.json(), (text) => {
        const headers = standardHeaders({ secrets: [secret], id, timestamp, body: Buffer.from(text) });
        expect(library.verify(text, headers)).toEqual(JSON.parse(text));
        expect(headers["webhook-signature"]).toBe(library.sign(id, new Date(timestamp * 1000), text));
      }),
      { numRuns: 50 },
    );
  });

  it("are accepted by the library with either secret during a rotation", () => {
    const timestamp = Math.floor(Date.now() / 1000);
    const secrets = [secret, newSecret()];
    const headers = standardHeaders({ secrets, id, timestamp, body: Buffer.from("{}") });
    for (const known of secrets) expect(new Webhook(known).verify("{}", headers)).toEqual({});
    expect(() => new Webhook(newSecret()).verify("{}", headers)).toThrow("No matching signature found");
  });

  it("are refused by the library for another body", () => {
    const timestamp = Math.floor(Date.now() / 1000);
    const headers = standardHeaders({ secrets: [secret], id, timestamp, body });
    expect(() => new Webhook(secret).verify("{}", headers)).toThrow("No matching signature found");
  });

  it.each([
    "",
    "whsec_",
    "whsec_!!!!",
    "whsec_!!!!AAAA",
    "whsec_AAAA!!!!",
    "whsec_AA==AAAA",
    "whsec_abc",
    "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
  ])("cannot be made with the secret %j", (given) => {
    const call = () => standardHeaders({ secrets: [given], id, timestamp: t, body });
    expect(call).toThrow(expect.objectContaining({ code: "invalid_argument", field: "secret" }));
  });
});
