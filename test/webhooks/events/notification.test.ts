import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { readPayload } from "../../../src/webhooks/events/notification.js";
import type { ParsedResource } from "../../../src/webhooks/fhir.js";
import { build, EVENT_ID, organization, patient, practitioner, TOPIC } from "../../support/clinic.js";

const options = { form: "notification", topic: TOPIC, allowed: null, eventIdField: false } as const;
const built = await build({ related: [organization, practitioner] });
const event = readPayload(built.payload);
const parse = (body: Buffer): unknown => JSON.parse(body.toString());

const urls = [
  "urn:uuid:a45f5dd7-0a65-57a3-a3b2-e455a2382422",
  `urn:uuid:${practitioner.id.toLowerCase()}`,
  "urn:uuid:991985bc-0b47-5868-8b4f-285327d6ad7a",
] as const;
const rewritten = [
  {
    ...patient,
    generalPractitioner: [{ reference: urls[1], display: "Dr. Who" }],
    managingOrganization: { reference: urls[2] },
  },
  { ...practitioner, qualification: [{ issuer: { reference: urls[2] } }] },
  organization,
];
const content = {
  "hub.topic": TOPIC,
  "hub.event": "patient.updated",
  context: [
    {
      key: "patient",
      resource: {
        resourceType: "Bundle",
        id: "4a69acc3-d820-53f3-8ce3-0302a88d77c8",
        meta: { lastUpdated: "2026-01-31T23:59:59.007Z" },
        type: "collection",
        entry: rewritten.map((resource, index) => ({ fullUrl: urls[index], resource })),
      },
    },
  ],
};

describe("the body", () => {
  it("has the notification form of the interface", () => {
    expect(parse(event.body(options))).toStrictEqual({
      id: EVENT_ID,
      timestamp: "2026-01-31T23:59:59.007Z",
      event: content,
    });
  });

  it("has the envelope form by option", () => {
    expect(parse(event.body({ ...options, form: "envelope" }))).toStrictEqual({
      id: EVENT_ID,
      eventType: "patient.updated",
      payload: { timestamp: "2026-01-31T23:59:59.007Z", id: EVENT_ID, event: content },
    });
  });

  it.each(["notification", "envelope"] as const)("carries event_id in the %s form by option", (form) => {
    const plain = parse(event.body({ ...options, form })) as object;
    expect(parse(event.body({ ...options, form, eventIdField: true }))).toStrictEqual({
      ...plain,
      event_id: EVENT_ID,
    });
  });

  it("names the context by the event type up to its first dot", async () => {
    const { payload } = await build({ type: "medication-request-admission.created" });
    expect(parse(readPayload(payload).body(options))).toMatchObject({
      event: {
        "hub.event": "medication-request-admission.created",
        context: [{ key: "medication-request-admission" }],
      },
    });
  });

  it("leaves out what may not be read, and references to it keep their form", () => {
    const body = parse(event.body({ ...options, allowed: [true, false, true] }));
    expect(body).toHaveProperty("event.context.0.resource.entry", [
      {
        fullUrl: urls[0],
        resource: { ...rewritten[0], generalPractitioner: patient.generalPractitioner },
      },
      { fullUrl: urls[2], resource: organization },
    ]);
  });

  it("leaves out what it was told nothing about", () => {
    const body = parse(event.body({ ...options, allowed: [true] }));
    expect(body).toHaveProperty("event.context.0.resource.entry", [{ fullUrl: urls[0], resource: patient }]);
  });

  it("has the same bytes in every attempt and every process, but for the topic", () => {
    const again = readPayload(built.payload);
    for (const form of ["notification", "envelope"] as const) {
      for (const eventIdField of [true, false]) {
        const all = { ...options, form, eventIdField };
        const body = event.body(all);
        expect(event.body(all).equals(body)).toBe(true);
        expect(again.body(all).equals(body)).toBe(true);
        expect(event.body({ ...all, allowed: [true, true, true] }).equals(body)).toBe(true);
        const other = event.body({ ...all, topic: EVENT_ID }).toString();
        expect(other.replace(`"hub.topic":"${EVENT_ID}"`, `"hub.topic":"${TOPIC}"`)).toBe(body.toString());
      }
    }
  });

  it("is the caller's own: writing into it changes no other", () => {
    const before = event.body(options).toString();
    event.body(options).fill(0);
    expect(event.body(options).toString()).toBe(before);
  });

  it("stays JSON whatever the topic is", () => {
    for (const allowed of [null, [true]]) {
      const body = event.body({ ...options, allowed, topic: 'a"b\\文' });
      expect(parse(body)).toHaveProperty(["event", "hub.topic"], 'a"b\\文');
    }
  });
});

describe("an entry", () => {
  it("is the resource as it was emitted, references not rewritten", () => {
    expect(event.entries.map((entry) => entry.resource())).toStrictEqual([
      patient,
      practitioner,
      organization,
    ]);
  });

  it("is a copy for each who asks: a hook that changes it changes nothing for the next one", () => {
    const before = event.body(options).toString();
    const resource = event.entries[0]?.resource() as ParsedResource | undefined;
    const [name] = (resource?.["name"] ?? []) as { family: string }[];
    Object.assign(name ?? {}, { family: "changed" });
    expect(resource).not.toEqual(event.entries[0]?.resource());
    expect(event.body(options).toString()).toBe(before);
  });
});

describe("any graph of resources, read by anyone, in either form", () => {
  const ids = ["1", "2", "3", "4", "a987fbc9-4bed-4078-8f07-9141ba07c9f3"];
  const types = ["Patient", "Group"];
  // Only one of them is meant by `urn:uuid:4`.
  const names = types
    .flatMap((type) => ids.map((id) => `${type}/${id}`))
    .filter((name) => name !== "Patient/4");
  const reference = fc.oneof(
    fc.constantFrom(...names, ...names.map((name) => `${name}/_history/7`), "urn:uuid:4", "#p", "Patient/9"),
    fc.string(),
  );
  const element = fc.oneof(
    fc.record({ reference, display: fc.string({ unit: "binary" }) }),
    fc.record({ deep: fc.array(fc.record({ who: fc.record({ reference }) })) }),
    fc.constant({ text: 'not one: "reference":"Patient/1"', 'x"reference': "Patient/1" }),
  );
  const graph = fc
    .array(fc.array(element, { maxLength: 4 }), { minLength: names.length, maxLength: names.length })
    .map((elements) =>
      names.map((name, index) => ({
        resourceType: name.split("/")[0] ?? "",
        id: name.split("/")[1] ?? "",
        elements: elements[index],
      })),
    );

  /** Rewrites the slow way. */
  const rewrite = (value: unknown, to: (reference: string) => string): unknown => {
    if (Array.isArray(value)) return value.map((item) => rewrite(item, to));
    if (typeof value !== "object" || value === null) return value;
    const isReference = (key: string, item: unknown): item is string =>
      key === "reference" && typeof item === "string";
    return Object.fromEntries(
      Object.entries(value).map(([key, item]) => [
        key,
        isReference(key, item) ? to(item) : rewrite(item, to),
      ]),
    );
  };

  it("gives exactly the body that a rewriting of the objects gives", async () => {
    const mask = fc.array(fc.boolean(), { minLength: names.length, maxLength: names.length });
    await fc.assert(
      fc.asyncProperty(graph, mask, fc.boolean(), async ([focal, ...related], allowed, isEnvelope) => {
        if (focal === undefined) return;
        const { payload } = await build({ resource: focal, related });
        const prepared = readPayload(payload);
        const resources = prepared.entries.map((entry) => entry.resource() as ParsedResource);
        const full = parse(prepared.body(options)) as { event: typeof content };
        const fullUrls = full.event.context[0]?.resource.entry.map(({ fullUrl }) => fullUrl ?? "") ?? [];
        expect(new Set(fullUrls).size).toBe(resources.length);

        const isNamed =
          (name: string) =>
          ({ resourceType, id }: ParsedResource, index: number): boolean =>
            allowed[index] === true && (name === `${resourceType}/${id}` || name === `urn:uuid:${id}`);
        const to = (text: string): string => {
          const name = text.endsWith("/_history/7") ? text.slice(0, -"/_history/7".length) : text;
          return fullUrls[resources.findIndex(isNamed(name))] ?? text;
        };
        const entry = resources
          .map((resource, index) => ({ fullUrl: fullUrls[index], resource: rewrite(resource, to) }))
          .filter((_, index) => allowed[index] === true);
        const event = structuredClone(full.event);
        Object.assign(event.context[0]?.resource ?? {}, { entry });
        const notification = { id: EVENT_ID, timestamp: "2026-01-31T23:59:59.007Z", event };
        const { id, timestamp } = notification;
        const expected = isEnvelope
          ? { id, eventType: "patient.updated", payload: { timestamp, id, event } }
          : notification;
        const form = isEnvelope ? "envelope" : "notification";
        expect(parse(prepared.body({ ...options, form, allowed }))).toEqual(expected);
      }),
      { numRuns: 200 },
    );
  });
});

describe("a stored event", () => {
  it("is one line of JSON, then the resources' own texts, each once", () => {
    const [line = "", ...rest] = built.payload.split("\n");
    expect(JSON.parse(line)).toMatchObject({ v: 1, id: EVENT_ID, type: "patient.updated" });
    expect(rest.join("\n")).toBe(
      [patient, practitioner, organization].map((resource) => JSON.stringify(resource)).join(""),
    );
  });

  it("says its id and type", () => {
    expect(event).toMatchObject({ id: EVENT_ID, type: "patient.updated" });
  });

  it.each(["", "{}", "\n", "x\n{}", "null\n", '{"v":3}\n', '{"v":1}'])(
    "is refused if it is not a payload: %j",
    (payload) => {
      expect(() => readPayload(payload)).toThrow(
        expect.objectContaining({ name: "PostbellError", code: "invalid_argument", field: "payload" }),
      );
    },
  );
});
