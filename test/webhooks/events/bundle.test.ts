import { describe, expect, it } from "vitest";
import type { BuiltPayload, BundleRequest } from "../../../src/webhooks/events/bundle.js";
import { readPayload } from "../../../src/webhooks/events/notification.js";
import {
  build,
  EVENT_ID,
  organization,
  patient,
  practitioner,
  recordsOf,
  TOPIC,
} from "../../support/clinic.js";

interface Body {
  event: {
    context: [{ resource: { id: string; entry: { fullUrl: string; resource: Record<string, unknown> }[] } }];
  };
}

const bodyOf = ({ payload }: BuiltPayload): Body =>
  JSON.parse(
    readPayload(payload)
      .body({ form: "notification", topic: TOPIC, allowed: null, eventIdField: false })
      .toString(),
  ) as Body;
const bundleOf = (built: BuiltPayload) => bodyOf(built).event.context[0].resource;
const namesOf = (built: BuiltPayload) =>
  bundleOf(built).entry.map(
    ({ resource }) => `${String(resource["resourceType"])}/${String(resource["id"])}`,
  );
const fullUrlsOf = (built: BuiltPayload) => bundleOf(built).entry.map(({ fullUrl }) => fullUrl);
const refer = (reference: string) => ({ reference });
const observation = (id: string, ...references: string[]) => ({
  resourceType: "Observation",
  id,
  hasMember: references.map(refer),
});
const referencesOf = (built: BuiltPayload, entry = 0) => {
  const members = bundleOf(built).entry[entry]?.resource["hasMember"] ?? [];
  return (members as { reference: string }[]).map(({ reference }) => reference);
};

describe("the entries of a bundle", () => {
  it("are the focal resource first, then what it references in depth", async () => {
    const built = await build({ related: [organization, practitioner] });
    expect(namesOf(built)).toEqual(["Patient/p.1", `Practitioner/${practitioner.id}`, "Organization/org"]);
  });

  it("leave out related resources that nothing references", async () => {
    const built = await build({ resource: organization, related: [practitioner, patient] });
    expect(namesOf(built)).toEqual(["Organization/org"]);
  });

  it("hold each resource once, and cycles end", async () => {
    const a = observation("a", "Observation/b", "Observation/b", "Observation/a");
    const b = observation("b", "Observation/c/_history/2", "Observation/a");
    const c = observation("c", "Observation/a/_history/1", "Observation/b");
    const built = await build({ resource: a, related: [c, b, a, { ...b, extra: true }] });
    expect(namesOf(built)).toEqual(["Observation/a", "Observation/b", "Observation/c"]);
    const [urlA, urlB, urlC] = fullUrlsOf(built);
    expect(referencesOf(built, 0)).toEqual([urlB, urlB, urlA]);
    expect(referencesOf(built, 1)).toEqual([urlC, urlA]);
    expect(referencesOf(built, 2)).toEqual([urlA, urlB]);
  });

  it("are the first of several related resources with the same type and id", async () => {
    const related = [organization, { ...organization, name: "second" }];
    const built = await build({ resource: observation("a", "Organization/org"), related });
    expect(bundleOf(built).entry[1]?.resource).toEqual(organization);
  });

  it("leave contained resources alone", async () => {
    const { resolve, asked } = recordsOf({});
    const built = await build({ resource: observation("a", "#c", "#", ""), resolve });
    expect(asked).toEqual([]);
    expect(referencesOf(built)).toEqual(["#c", "#", ""]);
  });

  it("are found by urn:uuid, in either case, where a related resource has that id", async () => {
    const id = practitioner.id;
    const built = await build({
      resource: observation("a", `urn:uuid:${id.toLowerCase()}`, `urn:uuid:${id}`, `Practitioner/${id}`),
      related: [practitioner],
    });
    expect(namesOf(built)).toEqual(["Observation/a", `Practitioner/${id}`]);
    expect(new Set(referencesOf(built))).toEqual(new Set([`urn:uuid:${id.toLowerCase()}`]));
  });

  it("are asked of resolve, once each, where related does not hold them", async () => {
    const { resolve, asked } = recordsOf({ [`Practitioner/${practitioner.id}`]: practitioner });
    const built = await build({ related: [organization], resolve });
    expect(namesOf(built)).toEqual(["Patient/p.1", `Practitioner/${practitioner.id}`, "Organization/org"]);
    expect(asked).toEqual([`Practitioner/${practitioner.id}`]);
  });

  it("may come from a resolve that answers at once", async () => {
    const built = await build({
      resource: observation("a", "Organization/org"),
      resolve: () => organization,
    });
    expect(namesOf(built)).toEqual(["Observation/a", "Organization/org"]);
  });

  it("reach absolute URLs and searches only through resolve", async () => {
    const url = "https://fhir.example/Organization/org";
    const search = "Organization?name=Clinic";
    const resource = observation("a", url, search);
    const unasked = await build({ resource, related: [organization] });
    expect(referencesOf(unasked)).toEqual([url, search]);

    const { resolve } = recordsOf({ [url]: organization, [search]: { ...organization } });
    const asked = await build({ resource, resolve });
    expect(namesOf(asked)).toEqual(["Observation/a", "Organization/org"]);
    const target = fullUrlsOf(asked)[1];
    expect(referencesOf(asked)).toEqual([target, target]);
  });

  it("keep references as they are that nobody knows, as written", async () => {
    const resource = observation("a", "Group/1/_history/3", "Group/1", "Observation/b", 'x"y\\');
    const built = await build({ resource, related: [observation("b", "Group/2")] });
    expect(referencesOf(built)).toEqual(["Group/1/_history/3", "Group/1", fullUrlsOf(built)[1], 'x"y\\']);
  });

  it.each([
    ["nothing", undefined],
    ["null", null],
    ["false", false],
    ["a string", "Organization/org"],
    [
      "a cycle",
      (() => {
        const it: Record<string, unknown> = { resourceType: "Organization", id: "org" };
        it["it"] = it;
        return it;
      })(),
    ],
    ["no resource", { id: "org" }],
    ["another resource of that type", { ...organization, id: "other" }],
    ["another type with that id", { ...organization, resourceType: "Patient" }],
    ["a resource without an id", { resourceType: "Organization" }],
  ])("do not trust a resolve that answers with %s", async (_, answer) => {
    const built = await build({ resource: observation("a", "Organization/org"), resolve: () => answer });
    expect(namesOf(built)).toEqual(["Observation/a"]);
    expect(referencesOf(built)).toEqual(["Organization/org"]);
  });

  it("come in the order they are referenced, whatever answers first", async () => {
    const waiting: (() => void)[] = [];
    const resolve = (reference: string): Promise<unknown> =>
      new Promise((answer) => {
        waiting.unshift(() => answer(observation(reference.slice(12))));
        if (waiting.length === 3) for (const next of waiting) next();
      });
    const built = await build({
      resource: observation("a", "Observation/3", "Observation/1", "Observation/2"),
      resolve,
    });
    expect(namesOf(built)).toEqual(["Observation/a", "Observation/3", "Observation/1", "Observation/2"]);
  });

  it("are looked up at most eight at a time", async () => {
    let [now, most] = [0, 0];
    const resolve = async (reference: string): Promise<unknown> => {
      now += 1;
      most = Math.max(most, now);
      await new Promise(setImmediate);
      now -= 1;
      return observation(reference.slice(12));
    };
    const references = Array.from({ length: 50 }, (_, index) => `Observation/${index}`);
    const built = await build({ resource: observation("a", ...references), resolve });
    expect(namesOf(built)).toEqual(["Observation/a", ...references]);
    expect(most).toBe(8);
  });

  it("are looked up four times as often as there may be entries, and no more", async () => {
    const missing = Array.from({ length: 9_000 }, (_, index) => `Observation/none-${index}`);
    const { resolve, asked } = recordsOf({
      "Observation/b": observation("b", ...missing),
      "Observation/c": observation("c"),
    });
    const limits = { entries: 5, bytes: 10_000_000 };
    const built = await build({
      resource: observation(
        "a",
        "Observation/b",
        "Organization/org",
        ...missing.slice(0, 3),
        "Observation/c",
      ),
      related: [organization],
      resolve,
      limits,
    });
    expect(asked).toHaveLength(20);
    expect(namesOf(built)).toEqual(["Observation/a", "Observation/b", "Organization/org", "Observation/c"]);
    expect(referencesOf(built, 1)).toEqual(missing);
    const spent = recordsOf({ "Observation/c": observation("c") });
    const late = observation("a", ...missing.slice(0, 20), "Observation/c", "Organization/org");
    const unasked = await build({ resource: late, related: [organization], resolve: spent.resolve, limits });
    expect(namesOf(unasked)).toEqual(["Observation/a", "Organization/org"]);
  });

  it("are what they were when the event was emitted", async () => {
    const resource = structuredClone(patient);
    const building = build({ resource, related: [organization, practitioner] });
    resource.id = "changed";
    expect(namesOf(await building)[0]).toBe("Patient/p.1");
  });
});

describe("a fullUrl", () => {
  it("is the resource's own id, in lower case, where that is a UUID", async () => {
    const built = await build({ related: [practitioner] });
    expect(fullUrlsOf(built)[1]).toBe(`urn:uuid:${practitioner.id.toLowerCase()}`);
  });

  it("is made from account, type and id otherwise: the same in every event, and for ever", async () => {
    const one = await build({ related: [organization] });
    const other = await build({ resource: organization, eventId: "c56a4180-65aa-42ec-a945-5fd21dec0538" });
    expect(fullUrlsOf(one)[1]).toBe("urn:uuid:991985bc-0b47-5868-8b4f-285327d6ad7a");
    expect(fullUrlsOf(other)[0]).toBe(fullUrlsOf(one)[1]);
  });

  it("differs between accounts, types and ids", async () => {
    const urls = await Promise.all([
      build({ resource: organization }),
      build({ resource: organization, account: "other" }),
      build({ resource: { ...organization, id: "org2" } }),
      build({ resource: { ...organization, resourceType: "Group" } }),
    ]);
    expect(new Set(urls.map((built) => fullUrlsOf(built)[0])).size).toBe(4);
  });

  it("is made from the event and the position without an id", async () => {
    const resource = { resourceType: "Observation", hasMember: [refer("https://x/1"), refer("https://x/2")] };
    const resolve = () => ({ resourceType: "Basic" });
    const built = await build({ resource, resolve });
    expect(new Set(fullUrlsOf(built)).size).toBe(3);
    expect(await build({ resource, resolve })).toEqual(built);
    const other = await build({ resource, resolve, eventId: "c56a4180-65aa-42ec-a945-5fd21dec0538" });
    expect(fullUrlsOf(other)[0]).not.toBe(fullUrlsOf(built)[0]);
  });

  it("is never the same for two entries, also where two types share a UUID", async () => {
    const id = "a987fbc9-4bed-4078-8f07-9141ba07c9f3";
    const person = { resourceType: "Person", id, link: [{ target: refer(`Patient/${id}`) }] };
    const built = await build({ resource: person, related: [{ resourceType: "Patient", id }] });
    const [first, second] = fullUrlsOf(built);
    expect(first).toBe(`urn:uuid:${id}`);
    expect(second).toMatch(/^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-/);
    expect(bundleOf(built).entry[0]?.resource["link"]).toEqual([{ target: refer(second ?? "") }]);
  });

  it("has nothing to do with the bundle's id, which is the event's own", async () => {
    const [one, again, other] = [
      bundleOf(await build()).id,
      bundleOf(await build({ resource: organization })).id,
      bundleOf(await build({ eventId: "c56a4180-65aa-42ec-a945-5fd21dec0538" })).id,
    ];
    expect(one).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    expect(again).toBe(one);
    expect([one, EVENT_ID]).not.toContain(other);
  });
});

describe("an event that cannot be used", () => {
  const refusal = (code: string, field: string) =>
    expect.objectContaining({ name: "PostbellError", code, field });

  it.each([
    ["no resource", { resource: undefined }, "resource"],
    ["a resource without a type", { resource: { id: "1" } }, "resource.resourceType"],
    ["a resource whose id is a number", { resource: { resourceType: "Patient", id: 1 } }, "resource.id"],
    ["a BigInt in the resource", { resource: { resourceType: "Patient", a: 1n } }, "resource"],
    ["a related resource without a type", { related: [organization, {}] }, "related[1].resourceType"],
    ["a hole in related", { related: Array(1) }, "related[0]"],
    ["related that is no list", { related: { 0: organization } }, "related"],
    ["a resource of another type", { focalTypes: ["Person", "Group"] }, "resource.resourceType"],
    ["an invalid time", { occurredAt: Number.NaN }, "occurredAt"],
    ["an endless time", { occurredAt: Number.POSITIVE_INFINITY }, "occurredAt"],
    ["the year 10000", { occurredAt: 253_402_300_800_000 }, "occurredAt"],
  ])("is refused: %s", async (_, changes, field) => {
    await expect(build(changes as unknown as Partial<BundleRequest>)).rejects.toThrow(
      refusal("invalid_argument", field),
    );
  });

  it("says which types fit", async () => {
    const building = build({ resource: organization, focalTypes: ["Person", "Patient"] });
    await expect(building).rejects.toThrow(
      "an event of type 'patient.updated' is about a resource of type Person or Patient, not Organization",
    );
    await expect(build({ focalTypes: ["Patient"] })).resolves.toBeDefined();
  });

  it("is refused with more entries than allowed, before all the others are looked up", async () => {
    let calls = 0;
    const resolve = (reference: string) => {
      calls += 1;
      const next = Number(reference.slice(12)) + 1;
      return observation(reference.slice(12), `Observation/${next}`);
    };
    const endless = build({
      resource: observation("a", "Observation/1"),
      resolve,
      limits: { entries: 5, bytes: 262_144 },
    });
    await expect(endless).rejects.toThrow(refusal("event_too_large", "resource"));
    await expect(endless).rejects.toThrow("6 entries counted, the limit is 5");
    expect(calls).toBe(5);
  });

  it("may have exactly as many entries as allowed", async () => {
    const building = build({ related: [organization, practitioner], limits: { entries: 3, bytes: 262_144 } });
    expect(namesOf(await building)).toHaveLength(3);
  });

  it("is refused with more bytes than allowed, counted as UTF-8, before anything is looked up", async () => {
    const { resolve, asked } = recordsOf({});
    const resource = { resourceType: "Patient", id: "1", a: "文".repeat(100), link: refer("Patient/2") };
    const building = build({ resource, resolve, limits: { entries: 5, bytes: 300 } });
    await expect(building).rejects.toThrow(refusal("event_too_large", "resource"));
    await expect(building).rejects.toThrow(/\d{3} bytes counted, the limit is 300/);
    expect(asked).toEqual([]);
  });

  it("is refused by the size of its largest body, and every body of an accepted one is within the limit", async () => {
    const resource = observation("a", "Observation/b", `https://${"long".repeat(50)}/b`, "#c");
    const { resolve } = recordsOf({
      "Observation/b": observation("b", "Observation/a"),
      [`https://${"long".repeat(50)}/b`]: observation("b"),
    });
    const attempt = (bytes: number) => build({ resource, resolve, limits: { entries: 9, bytes } });
    let limit = 100;
    let built: BuiltPayload | undefined;
    while (built === undefined) {
      limit += 1;
      built = await attempt(limit).catch(() => undefined);
    }
    const event = readPayload(built.payload);
    const sizes = (["notification", "envelope"] as const).flatMap((form) =>
      [null, [true, false], [true, true]].map(
        (allowed) => event.body({ form, topic: TOPIC, allowed, eventIdField: true }).length,
      ),
    );
    expect(Math.max(...sizes)).toBeLessThanOrEqual(limit);
    expect(Math.max(...sizes)).toBeGreaterThan(limit - 250);
    await expect(attempt(limit - 1)).rejects.toThrow(refusal("event_too_large", "resource"));
  });
});

describe("the digest", () => {
  const digest = async (changes: Partial<BundleRequest> = {}) => (await build(changes)).digest;

  it("is SHA-256 in hexadecimal, and the same for the same event", async () => {
    expect(await digest()).toMatch(/^[0-9a-f]{64}$/);
    expect(await digest({ resource: structuredClone(patient) })).toBe(await digest());
  });

  it("does not depend on what resolve found, on the account, or on a time the host did not give", async () => {
    expect(await digest({ resolve: () => organization })).toBe(await digest());
    expect(await digest({ isOccurredAtGiven: false, occurredAt: 1 })).toBe(
      await digest({ isOccurredAtGiven: false, occurredAt: 2 }),
    );
  });

  it("differs with everything the host gave", async () => {
    const digests = await Promise.all([
      digest(),
      digest({ type: "patient.created" }),
      digest({ occurredAt: 1 }),
      digest({ isOccurredAtGiven: false }),
      digest({ resource: { ...patient, active: true } }),
      digest({ related: [organization] }),
      digest({ related: [practitioner] }),
      digest({ related: [organization, practitioner] }),
    ]);
    expect(new Set(digests).size).toBe(digests.length);
  });
});
