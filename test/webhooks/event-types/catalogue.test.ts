import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { isPostbellError, type PostbellError } from "../../../src/core/errors.js";
import {
  contextKey,
  type EventCatalogue,
  findEventType,
  readCatalogue,
} from "../../../src/webhooks/event-types/catalogue.js";
import { clinicalEvents } from "../../../src/webhooks/event-types/clinical-events.js";
import interfaceEvents from "../../data/event-types.json" with { type: "json" };

const clinical = readCatalogue(clinicalEvents);

function errorOf(action: () => unknown): PostbellError {
  try {
    action();
  } catch (error) {
    if (isPostbellError(error)) return error;
    throw error;
  }
  throw new Error("nothing was thrown");
}

describe("the clinical catalogue", () => {
  it("holds the fifty types of the interface, and no other", () => {
    expect(interfaceEvents).toHaveLength(50);
    expect(Object.keys(clinicalEvents).toSorted()).toEqual(interfaceEvents.toSorted());
  });

  it("puts one FHIR R4 resource type behind each prefix", () => {
    const byPrefix = new Map(
      Object.entries(clinicalEvents).map(([type, resource]) => [contextKey(type), resource]),
    );
    expect(Object.fromEntries(byPrefix)).toEqual({
      patient: "Patient",
      encounter: "Encounter",
      "allergy-intolerance": "AllergyIntolerance",
      condition: "Condition",
      "medication-request": "MedicationRequest",
      immunization: "Immunization",
      observation: "Observation",
      "diagnostic-request": "ServiceRequest",
      "diagnostic-report": "DiagnosticReport",
      "document-in-reference": "DocumentReference",
      "document-out-reference": "DocumentReference",
      "document-reference": "DocumentReference",
      "document-reference-consultation": "DocumentReference",
      "document-reference-attachment": "DocumentReference",
      "episode-of-care": "EpisodeOfCare",
      "encounter-admission": "Encounter",
      "document-reference-admission": "DocumentReference",
      consent: "Consent",
      "medication-request-admission": "MedicationRequest",
      "medication-administration-admission": "MedicationAdministration",
    });
    for (const [type, resource] of Object.entries(clinicalEvents)) {
      expect(byPrefix.get(contextKey(type)), type).toBe(resource);
    }
  });

  it("names the nearest type for one it does not have", () => {
    const error = errorOf(() => findEventType(clinical, "patient.upated"));
    expect(error).toMatchObject({ code: "unknown_event_type", field: "type" });
    expect(error.message).toBe("unknown event type 'patient.upated'; did you mean 'patient.updated'?");
  });

  it.each([
    "__proto__",
    "constructor",
    "toString",
    "hasOwnProperty",
    "",
    "Patient.created",
    "patient.created ",
  ])("does not know %j", (name) => {
    expect(errorOf(() => findEventType(clinical, name)).code).toBe("unknown_event_type");
  });

  it("answers a name of a megabyte with a short message, and soon", () => {
    const error = errorOf(() => findEventType(clinical, "patient.created".repeat(70_000)));
    expect(error.message.length).toBeLessThan(200);
  });
});

describe("a host's own catalogue", () => {
  it("may name one resource type or several", () => {
    const own = readCatalogue({ "invoice.paid": "Invoice", "person.merged": ["Person", "Patient"] });
    expect(findEventType(own, "invoice.paid")).toEqual(["Invoice"]);
    expect(findEventType(own, "person.merged")).toEqual(["Person", "Patient"]);
    expect([...own.prefixes]).toEqual(["invoice", "person"]);
  });

  it("does not change when the host changes its table later", () => {
    const types = ["Person"];
    const table: Record<string, string | string[]> = { "person.merged": types };
    const own = readCatalogue(table);
    types.push("Patient");
    table["person.split"] = "Person";
    expect(findEventType(own, "person.merged")).toEqual(["Person"]);
    expect(own.types.has("person.split")).toBe(false);
  });

  it.each([
    ["a name without a dot", { invoice: "Invoice" }, "events['invoice']"],
    ["a name with two dots", { "a.b.c": "Invoice" }, "events['a.b.c']"],
    ["upper case", { "Invoice.paid": "Invoice" }, "events['Invoice.paid']"],
    ["an empty action", { "invoice.": "Invoice" }, "events['invoice.']"],
    ["a wildcard", { "invoice.*": "Invoice" }, "events['invoice.*']"],
    ["a malformed resource type", { "invoice.paid": "in voice" }, "events['invoice.paid']"],
    ["a resource type that is no string", { "invoice.paid": 7 }, "events['invoice.paid']"],
    ["no resource type", { "invoice.paid": [] }, "events['invoice.paid']"],
    ["an own __proto__", JSON.parse('{"__proto__":"Invoice"}'), "events['__proto__']"],
    ["no entry", {}, "events"],
    ["null", null, "events"],
    ["a list", ["invoice.paid"], "events"],
  ])("is refused with %s", (_, table, field) => {
    const error = errorOf(() => readCatalogue(table as EventCatalogue));
    expect(error).toMatchObject({
      code: "invalid_option",
      field,
      message: expect.stringMatching(/^createWebhooks: .*events/),
    });
  });

  it("accepts every name of lower case letters, digits and hyphens around one dot", () => {
    const part = fc.stringMatching(/^[a-z0-9-]{1,12}$/);
    fc.assert(
      fc.property(part, part, (prefix, action) => {
        const own = readCatalogue({ [`${prefix}.${action}`]: "Basic" });
        expect(findEventType(own, `${prefix}.${action}`)).toEqual(["Basic"]);
        expect(contextKey(`${prefix}.${action}`)).toBe(prefix);
      }),
    );
  });
});

describe("contextKey", () => {
  it("is the part before the first dot, or all of a name without one", () => {
    expect(contextKey("a.b.c")).toBe("a");
    expect(contextKey("a")).toBe("a");
  });
});
