/**
 * Checked by `tsc`: a line that should not compile and does is an unused `@ts-expect-error`, which
 * is an error itself.
 */

import type { Consent, Patient } from "fhir/r4.js";
import { describe, expect, it } from "vitest";
import {
  type ClinicalEventType,
  clinicalEvents,
  createWebhooks,
  type Emitted,
  type EventCatalogue,
  type EventInput,
  type Webhooks,
} from "../../../src/index.js";
import type { Service } from "../../../src/ports.js";
import { memoryStorage } from "../../../storage/memory/index.js";
import { access } from "../../support/registration-api.js";

const patient: Patient = { resourceType: "Patient", id: "1", name: [{ family: "Zoë" }] };
const account = "acme";
const required = { access, storage: memoryStorage() };
const unknownType = { code: "unknown_event_type" };

describe("emit", () => {
  it("compiles for the fifty types, and for no other name", async () => {
    const webhooks = createWebhooks(required);
    const emitted: Emitted = await webhooks.emit({ type: "patient.updated", account, resource: patient });
    expect(emitted.duplicate).toBe(false);
    await expect(
      // @ts-expect-error misspelt
      webhooks.emit({ type: "patient.upated", account, resource: patient }),
    ).rejects.toMatchObject(unknownType);
    await expect(
      // @ts-expect-error a subscription may have a wildcard, an event has none
      webhooks.emit({ type: "patient.*", account, resource: patient }),
    ).rejects.toMatchObject(unknownType);
    await webhooks.emit({ type: "patient.updated", account, resource: patient, keepMs: 3_600_000 });
    const hour = "3600000";
    await expect(
      // @ts-expect-error a number of milliseconds
      webhooks.emit({ type: "patient.updated", account, resource: patient, keepMs: hour }),
    ).rejects.toMatchObject({ code: "invalid_argument", field: "keepMs" });
    const type: ClinicalEventType = "consent.updated";
    const consent: Consent = { resourceType: "Consent", status: "active", scope: {}, category: [] };
    const input: EventInput<ClinicalEventType> = { type, account, resource: consent };
    expect((await webhooks.emit(input)).deliveries).toEqual([]);
  });

  it("gives one result for one event, and a list for a list", async () => {
    const webhooks = createWebhooks(required);
    const event = { type: "patient.updated", account, resource: patient } as const;
    const many: readonly Emitted[] = await webhooks.emit([event, { ...event, related: [patient] }]);
    expect(many).toHaveLength(2);
    // @ts-expect-error a list has no id
    expect((await webhooks.emit([event])).id).toBeUndefined();
  });

  it("does not compile without account or resource, or with a field that there is not", async () => {
    const webhooks = createWebhooks(required);
    const refused = { code: "invalid_argument" };
    // @ts-expect-error no account
    await expect(webhooks.emit({ type: "patient.updated", resource: patient })).rejects.toMatchObject(
      refused,
    );
    // @ts-expect-error no resource
    await expect(webhooks.emit({ type: "patient.updated", account })).rejects.toMatchObject(refused);
    await expect(
      // @ts-expect-error no such field
      webhooks.emit({ type: "patient.updated", account, resource: patient, at: new Date() }),
    ).rejects.toMatchObject(refused);
    await expect(
      // @ts-expect-error neither a Date nor a string
      webhooks.emit({ type: "patient.updated", account, resource: patient, occurredAt: 1 }),
    ).rejects.toMatchObject(refused);
  });

  it("knows the types of a host's own catalogue instead", async () => {
    const webhooks = createWebhooks({ ...required, events: { "invoice.paid": "Invoice" } });
    const resource = { resourceType: "Invoice", total: { value: 1 } };
    expect((await webhooks.emit({ type: "invoice.paid", account, resource })).duplicate).toBe(false);
    await expect(
      // @ts-expect-error a type of the default catalogue
      webhooks.emit({ type: "patient.updated", account, resource: patient }),
    ).rejects.toMatchObject(unknownType);
    const both = createWebhooks({ ...required, events: { ...clinicalEvents, "invoice.paid": "Invoice" } });
    await both.emit([
      { type: "invoice.paid", account, resource },
      { type: "patient.updated", account, resource: patient },
    ]);
  });

  it("takes any name where the catalogue is only known at run time", async () => {
    const events: EventCatalogue = { "invoice.paid": "Invoice" };
    const webhooks: Webhooks = createWebhooks({ ...required, events });
    await webhooks.emit({ type: "invoice.paid", account, resource: { resourceType: "Invoice" } });
    await expect(
      webhooks.emit({ type: "patient.updated", account, resource: patient }),
    ).rejects.toMatchObject(unknownType);
  });

  it("belongs to what an adapter takes as a service", () => {
    const service: Service = createWebhooks(required);
    expect(service.handle).toBeTypeOf("function");
  });
});

describe("emit of plain events", () => {
  const shop = {
    "order.paid": {
      schema: {
        type: "object",
        properties: {
          order: { type: "string" },
          total: { type: "integer" },
          state: { enum: ["new", "old"] },
          items: { type: "array", items: { type: "string" } },
        },
        required: ["order", "total"],
      },
    },
    order_paid: {},
  } as const;
  const open = () =>
    createWebhooks({
      storage: memoryStorage(),
      events: shop,
      access: {
        authenticate: () => null,
        // The whole event, and no resource.
        canRead: (_, { type, data }) => type === "order.paid" && data !== undefined,
      },
    });
  const refused = { code: "invalid_argument" };

  it("compiles with data that fits the schema of its type", async () => {
    const webhooks = open();
    await webhooks.emit({ type: "order.paid", account, data: { order: "A-1", total: 1, items: ["x"] } });
    await webhooks.emit({ type: "order_paid", account, data: [1, "two", null] });
    const list = [{ type: "order.paid", account, data: { order: "A-1", total: 1, state: "new" } }] as const;
    expect(await webhooks.emit(list)).toHaveLength(1);
  });

  it("does not compile with other data, or with a resource", async () => {
    const webhooks = open();
    await expect(
      // @ts-expect-error total is missing
      webhooks.emit({ type: "order.paid", account, data: { order: "A-1" } }),
    ).rejects.toMatchObject(refused);
    await expect(
      // @ts-expect-error no such state
      webhooks.emit({ type: "order.paid", account, data: { order: "A-1", total: 1, state: "no" } }),
    ).rejects.toMatchObject(refused);
    await expect(
      // @ts-expect-error a resource in place of data
      webhooks.emit({ type: "order_paid", account, resource: patient }),
    ).rejects.toMatchObject(refused);
    await expect(
      // @ts-expect-error misspelt
      webhooks.emit({ type: "order.payd", account, data: {} }),
    ).rejects.toMatchObject(unknownType);
  });
});
