/**
 * The types that the compiler infers from a catalogue. Checked by `tsc`: an unused
 * `@ts-expect-error` is an error itself. The calls run, so that types and checks agree.
 */

import { type } from "arktype";
import type { Patient } from "fhir/r4.js";
import * as v from "valibot";
import { assertType, describe, expect, expectTypeOf, it } from "vitest";
import * as z from "zod";
import {
  type CatalogueEvent,
  type ClinicalEvents,
  type ClinicalEventType,
  clinicalEvents,
  createWebhooks,
  defineEvents,
  type Emitted,
  type EventData,
  type Webhooks,
} from "../../../src/index.js";
import type { EventName } from "../../../src/ports.js";
import { createReceiver } from "../../../src/receiver/index.js";
import { memoryStorage } from "../../../storage/memory/index.js";

const account = "shop-7";
const authenticate = () => null;
const canRead = () => true;
const refused = { code: "invalid_argument" };

/** The same type in four ways, and one that is a union. */
const events = {
  "order.paid": { schema: z.object({ order: z.string(), total: z.int().optional() }) },
  "order.shipped": { schema: v.object({ order: v.string(), parcels: v.array(v.string()) }) },
  "order.returned": { schema: type({ order: "string", "reason?": "'broken'|'unwanted'" }) },
  "order.noted": {},
};

const open = () => createWebhooks({ storage: memoryStorage(), events, access: { authenticate, canRead } });

describe("the data of a catalogue's events", () => {
  it("is inferred from schemas of zod, valibot and arktype", () => {
    expectTypeOf<EventData<typeof events, "order.paid">>().toEqualTypeOf<{
      order: string;
      total?: number | undefined;
    }>();
    expectTypeOf<EventData<typeof events, "order.shipped">>().toEqualTypeOf<{
      order: string;
      parcels: string[];
    }>();
    expectTypeOf<EventData<typeof events, "order.returned">>().toEqualTypeOf<{
      order: string;
      reason?: "broken" | "unwanted";
    }>();
    expectTypeOf<EventData<typeof events, "order.noted">>().toBeUnknown();
    expectTypeOf<EventName<typeof events>>().toEqualTypeOf<keyof typeof events>();
    // @ts-expect-error no such type
    expectTypeOf<EventData<typeof events, "order.payd">>().toBeUnknown();
    expect(Object.keys(events)).toHaveLength(4);
  });

  it("is inferred from what z.toJSONSchema writes", () => {
    const described = { "order.paid": { schema: z.toJSONSchema(events["order.paid"].schema) } };
    expectTypeOf<EventData<typeof described, "order.paid">>().toEqualTypeOf<
      EventData<typeof events, "order.paid">
    >();
    expect(described["order.paid"].schema.type).toBe("object");
  });

  it("is inferred from a JSON Schema with unions, without `as const`", async () => {
    const webhooks = createWebhooks({
      storage: memoryStorage(),
      access: { authenticate, canRead },
      events: {
        a: {
          schema: { anyOf: [{ type: "string" }, { type: "object", properties: { n: { type: "number" } } }] },
        },
      },
    });
    await webhooks.emit({ type: "a", account, data: "x" });
    await webhooks.emit({ type: "a", account, data: { n: 1 } });
    // @ts-expect-error neither of both
    await expect(webhooks.emit({ type: "a", account, data: true })).rejects.toMatchObject(refused);
    const defined = defineEvents({
      b: {
        schema: {
          type: "object",
          properties: { kind: { enum: ["x", "y"] }, more: { oneOf: [{ type: "null" }, { const: 1 }] } },
          required: ["kind"],
        },
      },
      c: { schema: { type: "object", additionalProperties: { type: "array", items: { type: "number" } } } },
    });
    expectTypeOf<EventData<typeof defined, "b">["kind"]>().toEqualTypeOf<"x" | "y">();
    expectTypeOf<EventData<typeof defined, "b">["more"]>().toEqualTypeOf<1 | null | undefined>();
    expectTypeOf<EventData<typeof defined, "c">>().toEqualTypeOf<{
      readonly [name: string]: readonly number[];
    }>();
  });
});

describe("emit", () => {
  it("compiles with the data of its type only", async () => {
    const webhooks = open();
    await webhooks.emit({ type: "order.paid", account, data: { order: "A-1" } });
    await webhooks.emit({ type: "order.shipped", account, data: { order: "A-1", parcels: ["1"] } });
    const list: readonly Emitted[] = await webhooks.emit([
      { type: "order.returned", account, data: { order: "A-1", reason: "broken" } },
      { type: "order.noted", account, data: [1, null] },
    ]);
    expect(list).toHaveLength(2);
    // @ts-expect-error a number
    await expect(webhooks.emit({ type: "order.paid", account, data: { order: 1 } })).rejects.toMatchObject(
      refused,
    );
    const parcelled = { type: "order.shipped", account } as const;
    // @ts-expect-error no parcels
    await expect(webhooks.emit({ ...parcelled, data: { order: "1" } })).rejects.toMatchObject(refused);
    await expect(
      webhooks.emit([
        { type: "order.noted", account, data: 1 },
        // @ts-expect-error no such reason
        { type: "order.returned", account, data: { order: "A-1", reason: "late" } },
      ]),
    ).rejects.toMatchObject({ field: "[1].data.reason" });
    // @ts-expect-error no data
    await expect(webhooks.emit({ type: "order.paid", account })).rejects.toMatchObject(refused);
    // @ts-expect-error a field that there is not
    await expect(webhooks.emit({ type: "order.noted", account, data: 1, at: 1 })).rejects.toMatchObject(
      refused,
    );
  });

  it("compiles in a function for any type of the catalogue", async () => {
    const webhooks: Webhooks<typeof events> = open();
    function publish<T extends EventName<typeof events>>(type: T, data: EventData<typeof events, T>) {
      return webhooks.emit({ type, account, data });
    }
    const one = await publish("order.paid", { order: "A-1" });
    expectTypeOf(one).toEqualTypeOf<Emitted>();
    expect(one.duplicate).toBe(false);
    // @ts-expect-error a number
    await expect(publish("order.paid", { order: 1 })).rejects.toMatchObject(refused);
    // @ts-expect-error no such type
    await expect(publish("order.payd", { order: "1" })).rejects.toMatchObject({ code: "unknown_event_type" });
    const any: Webhooks = webhooks;
    expect(any).toBe(webhooks);
  });
});

describe("a function around emit for any type", () => {
  const patient: Patient = { resourceType: "Patient", id: "1", name: [{ family: "Zoë" }] };

  it("compiles for plain types", async () => {
    const webhooks = open();
    const audit = async <T extends keyof typeof events>(
      event: CatalogueEvent<typeof events, T>,
    ): Promise<Emitted> => {
      expectTypeOf(event.account).toBeString();
      const { id } = await webhooks.emit({ type: "order.noted", account, data: event.type });
      expect(id).toHaveLength(36);
      return webhooks.emit(event);
    };
    const emitted = await audit({ type: "order.paid", account, data: { order: "A-1" }, subject: "A-1" });
    expect(emitted.duplicate).toBe(false);
    await expect(
      // @ts-expect-error a number
      audit({ type: "order.paid", account, data: { order: 1 } }),
    ).rejects.toMatchObject(refused);
    // @ts-expect-error no such type
    await expect(audit({ type: "order.payd", account, data: {} })).rejects.toMatchObject({
      code: "unknown_event_type",
    });
    const all = <T extends keyof typeof events>(list: readonly CatalogueEvent<typeof events, T>[]) =>
      webhooks.emit(list);
    const list: readonly Emitted[] = await all([{ type: "order.noted", account, data: 1 }]);
    expect(list).toHaveLength(1);
  });

  it("compiles for the clinical types, the default", async () => {
    const webhooks = createWebhooks({ storage: memoryStorage(), access: { authenticate, canRead } });
    const audit = <T extends ClinicalEventType>(event: CatalogueEvent<ClinicalEvents, T>) => {
      expect(event.resource.id).toBe("1");
      return webhooks.emit(event);
    };
    const emitted: Emitted = await audit({ type: "patient.updated", account, resource: patient });
    expect(emitted.duplicate).toBe(false);
    const resource = { resourceType: "Person", id: "1", active: true } as const;
    await audit({ type: "patient.updated", account, resource: { ...resource, resourceType: "Patient" } });
    await expect(
      // @ts-expect-error another resource type
      audit({ type: "patient.updated", account, resource: { ...resource, resourceType: "Person" } }),
    ).rejects.toMatchObject(refused);
  });

  it("compiles for both in one catalogue, and for that one only", async () => {
    const both = { ...clinicalEvents, ...events };
    const access = { authenticate, canRead };
    const webhooks = createWebhooks({ storage: memoryStorage(), events: both, access });
    const audit = <T extends keyof typeof both>(event: CatalogueEvent<typeof both, T>) =>
      webhooks.emit(event);
    const any = (event: CatalogueEvent<typeof both>) => webhooks.emit(event);
    await audit({ type: "patient.updated", account, resource: patient });
    await any({ type: "order.paid", account, data: { order: "A-1" } });
    await expect(
      // @ts-expect-error a resource in place of data
      audit({ type: "order.paid", account, resource: patient }),
    ).rejects.toMatchObject(refused);
    const shop = open();
    // @ts-expect-error an event of another catalogue
    const wrong = (event: CatalogueEvent<typeof both>) => shop.emit(event);
    const unknown = { code: "unknown_event_type" };
    await expect(wrong({ type: "patient.updated", account, resource: patient })).rejects.toMatchObject(
      unknown,
    );
  });
});

describe("the subject of a type", () => {
  it("gets the data of its own schema, of a library or JSON", async () => {
    const webhooks = createWebhooks({
      storage: memoryStorage(),
      // Before `events`, and with parameters of its own to infer.
      access: {
        authenticate: ({ method }) => (method === "GET" ? null : undefined),
        canRead: (_, event) => event.type !== "order.paid" || event.data.order !== "",
      },
      events: {
        "order.paid": {
          schema: z.object({ order: z.string() }),
          subject: (data) => {
            expectTypeOf(data).toEqualTypeOf<{ order: string }>();
            return `order/${data.order}`;
          },
        },
        "order.shipped": {
          subject: (data) => {
            expectTypeOf(data).toEqualTypeOf<{ order: string; parcels: string[] }>();
            return `order/${data.order}`;
          },
          schema: events["order.shipped"].schema,
        },
        "order.returned": {
          description: "Goods came back.",
          schema: type({ order: "string" }),
          subject: ({ order }) => `order/${order}`,
        },
        "order.packed": {
          schema: { type: "object", properties: { kind: { enum: ["x", "y"] } }, required: ["kind"] },
          subject: (data) => {
            expectTypeOf(data.kind).toEqualTypeOf<"x" | "y">();
            return data.kind;
          },
        },
      },
    });
    expectTypeOf(webhooks.eventTypes()[0]).toEqualTypeOf<
      "order.paid" | "order.shipped" | "order.returned" | "order.packed" | undefined
    >();
    const found = async (subject: string): Promise<number> =>
      (await webhooks.deliveries.list({ account, subject })).items.length;
    await webhooks.registrations.create({ subscriber: { id: "k", account }, url: "https://a.example/" });
    await webhooks.emit({ type: "order.paid", account, data: { order: "A-1" } });
    await webhooks.emit({ type: "order.returned", account, data: { order: "A-1" } });
    await webhooks.emit({ type: "order.packed", account, data: { kind: "y" } });
    expect([await found("order/A-1"), await found("y")]).toEqual([2, 1]);
    // @ts-expect-error a number
    await expect(webhooks.emit({ type: "order.paid", account, data: { order: 1 } })).rejects.toMatchObject(
      refused,
    );
  });

  it("gets unknown data if the type has no schema, unless the function names it", () => {
    const { "order.noted": noted } = defineEvents({
      "order.placed": "ServiceRequest",
      "order.noted": { subject: (data: { order: string }) => data.order },
      // @ts-expect-error unknown
      "order.seen": { subject: (data) => data.order },
    });
    expect(noted.subject({ order: "A-1" })).toBe("A-1");
  });

  it("does not compile with other data, or without a text", () => {
    const schema = z.object({ order: z.string() });
    const wrong = defineEvents({
      // @ts-expect-error no such field
      a: { schema, subject: (data) => data.oder },
      // @ts-expect-error the data of another type
      b: { schema, subject: (data: { order: number }) => `${data.order}` },
      // @ts-expect-error a number
      c: { schema, subject: ({ order }) => order.length },
      // @ts-expect-error not a function
      d: { schema, subject: "order" },
    });
    expect(Object.keys(wrong)).toHaveLength(4);
  });

  it("leaves the catalogue of the service as it is", () => {
    const described = defineEvents({
      "order.paid": { schema: z.object({ order: z.string() }), subject: ({ order }) => order },
      "order.placed": ["ServiceRequest", "Task"],
    });
    const webhooks: Webhooks<typeof described> = createWebhooks({
      storage: memoryStorage(),
      events: described,
      access: { authenticate, canRead },
    });
    expectTypeOf<EventData<typeof described, "order.paid">>().toEqualTypeOf<{ order: string }>();
    expect(webhooks.eventTypes()).toHaveLength(2);
  });
});

describe("canRead", () => {
  it("can be left out if all types are plain, and only then", () => {
    const storage = memoryStorage();
    createWebhooks({ storage, events, access: { authenticate } });
    const refusedOption = expect.objectContaining({
      code: "invalid_option",
      field: "access.canRead",
    }) as Error;
    const mixed = { ...events, "invoice.paid": "Invoice" };
    // @ts-expect-error no canRead for records
    expect(() => createWebhooks({ storage, events: mixed, access: { authenticate } })).toThrow(refusedOption);
    // @ts-expect-error no canRead for the default catalogue
    expect(() => createWebhooks({ storage, access: { authenticate } })).toThrow(refusedOption);
  });

  it("gets a union by type", () => {
    createWebhooks({
      storage: memoryStorage(),
      events,
      access: {
        authenticate,
        canRead: (_, event) => {
          if (event.type !== "order.shipped") return true;
          expectTypeOf(event.data).toEqualTypeOf<{ order: string; parcels: string[] }>();
          // @ts-expect-error no such type
          return event.data.parcels.length > 0 || event.type === "order.payd";
        },
      },
    });
    expect.assertions(0);
  });
});

describe("onEvent of a receiver", () => {
  it("gets a union by type, with the catalogue of the sender", () => {
    const receiver = createReceiver<typeof events>({
      secrets: `whsec_${"a".repeat(43)}=`,
      body: "plain",
      onEvent: (event) => {
        if (event.type === "order.paid")
          expectTypeOf(event.data).toEqualTypeOf<{ order: string; total?: number | undefined }>();
        // @ts-expect-error no such type
        return event.type === "order.payd";
      },
    });
    expect(receiver).toHaveProperty("receive");
    createReceiver({
      secrets: `whsec_${"a".repeat(43)}=`,
      body: "plain",
      onEvent: ({ type: name, data }) => {
        assertType<string>(name);
        expectTypeOf(data).toBeUnknown();
      },
    });
  });
});
