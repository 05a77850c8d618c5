import { describe, expect, it } from "vitest";
import { createContent } from "../../src/content/index.js";
import { createWebhooks } from "../../src/index.js";
import { memoryStorage } from "../../storage/memory/index.js";
import { type Certificate, makeAuthority } from "../support/certificates.js";

const access = { authenticate: () => null, canRead: () => true };

const createWith = (ca: string | Uint8Array) =>
  createWebhooks({ storage: memoryStorage(), access, destinations: { ca } });

const damage = ({ cert }: Certificate): string => cert.replace(/\n[^\n]+\n/, "\nAAAA\n");

describe("destinations.ca", () => {
  it("accepts certificates in PEM, as text and as bytes, with comments between them", async () => {
    const [one, two] = [await makeAuthority("One"), await makeAuthority("Two")];
    const bundle = `# One\r\n${one.cert}\r\n# Two\r\n${two.cert}`;
    expect(() => createWith(bundle)).not.toThrow();
    expect(() => createWith(Buffer.from(bundle))).not.toThrow();
  });

  it("refuses text without a certificate when the service is created", async () => {
    const { key } = await makeAuthority();
    for (const wrong of ["", "ca.pem", key, Buffer.from([0, 1, 2])]) {
      expect(() => createWith(wrong)).toThrow(
        expect.objectContaining({
          code: "invalid_option",
          field: "destinations.ca",
          message: expect.stringContaining("at least one '-----BEGIN CERTIFICATE-----'"),
        }),
      );
    }
  });

  it("names the certificate that cannot be read, and does not repeat the text", async () => {
    const authority = await makeAuthority();
    const broken = `${authority.cert}\n${damage(authority)}`;
    expect(() => createWith(broken)).toThrow(/certificate 2 of 2 is not/);
    expect(() => createWith(authority.cert.slice(0, -40))).toThrow(/certificate 1 of 1 is not/);
    expect(() => createWith(broken)).not.toThrow(/AAAA/);
  });

  it("refuses more than 1 MiB before it looks for certificates", async () => {
    const { cert } = await makeAuthority();
    expect(() => createWith(cert.repeat(8_000))).toThrow(/at most 1048576 bytes/);
  });

  it("checks the certificates of embeds, too", () => {
    const options = {
      storage: memoryStorage(),
      site: { name: "Clinic", url: "https://www.example.org" },
      authenticate: () => null,
      users: [],
    };
    expect(() => createContent({ ...options, embeds: { destinations: { ca: "ca.pem" } } })).toThrow(
      expect.objectContaining({ field: "embeds.destinations.ca" }),
    );
  });
});
