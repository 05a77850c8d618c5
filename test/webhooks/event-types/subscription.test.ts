import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { readCatalogue, readEventTypes, subscribes } from "../../../src/webhooks/event-types/catalogue.js";
import { clinicalEvents } from "../../../src/webhooks/event-types/clinical-events.js";

const catalogue = readCatalogue(clinicalEvents);
const names = Object.keys(clinicalEvents);
const prefixes = [...catalogue.prefixes];

describe("event_types of a registration", () => {
  it("stands for every type, also future ones, when it is left out", () => {
    const eventTypes = readEventTypes(undefined, catalogue);
    expect(eventTypes).toBeNull();
    expect(subscribes(eventTypes, "patient.created")).toBe(true);
    expect(subscribes(eventTypes, "type.of-the-future")).toBe(true);
  });

  it("takes exact types, prefixes and the star, in the order given", () => {
    const given = ["patient.*", "consent.created", "*"];
    expect(readEventTypes(given, catalogue)).toEqual(given);
  });

  it("is a copy: a later change of the list changes nothing", () => {
    const given = ["patient.created"];
    const read = readEventTypes(given, catalogue);
    given.push("patient.deleted");
    expect(read).toEqual(["patient.created"]);
  });

  it.each([
    ["an empty list", [], "invalid_request", "event_types"],
    ["null", null, "invalid_request", "event_types"],
    ["a string", "patient.created", "invalid_request", "event_types"],
    ["an object", { 0: "patient.created", length: 1 }, "invalid_request", "event_types"],
    ["a number within", ["patient.created", 7], "invalid_request", "event_types[1]"],
    ["null within", [null], "invalid_request", "event_types[0]"],
    ["a hole", Array(1), "invalid_request", "event_types[0]"],
    ["a list within", [["patient.created"]], "invalid_request", "event_types[0]"],
    ["a duplicate", ["patient.created", "*", "patient.created"], "invalid_request", "event_types[2]"],
    ["another case", ["Patient.created"], "unknown_event_type", "event_types[0]"],
    ["an unknown prefix", ["patients.*"], "unknown_event_type", "event_types[0]"],
    ["a star within", ["patient.c*"], "unknown_event_type", "event_types[0]"],
    ["a prefix alone", ["patient"], "unknown_event_type", "event_types[0]"],
    ["a prefix and another ending", ["patient.x"], "unknown_event_type", "event_types[0]"],
    ["__proto__", ["__proto__"], "unknown_event_type", "event_types[0]"],
    ["__proto__.*", ["__proto__.*"], "unknown_event_type", "event_types[0]"],
    ["constructor", ["constructor"], "unknown_event_type", "event_types[0]"],
    ["an empty name", [""], "unknown_event_type", "event_types[0]"],
  ])("is refused for %s", (_, value, code, field) => {
    expect(() => readEventTypes(value, catalogue)).toThrow(expect.objectContaining({ code, field }));
  });

  it("names the nearest type, or the nearest prefix, in the message", () => {
    expect(() => readEventTypes(["patient.upated"], catalogue)).toThrow("did you mean 'patient.updated'?");
    expect(() => readEventTypes(["patients.*"], catalogue)).toThrow("did you mean 'patient.*'?");
  });

  it.each(["order.*", "order.created", "patient.x", "invoice.paid"])("names no type for %s", (name) => {
    expect(() => readEventTypes([name], catalogue)).toThrow(
      expect.objectContaining({ message: `unknown event type '${name}'; it is not in the catalogue` }),
    );
  });

  it("refuses whatever else a client may send, and only with the two documented codes", () => {
    fc.assert(
      fc.property(fc.anything({ withNullPrototype: true, withSparseArray: true }), (value) => {
        fc.pre(value !== undefined);
        const refusal = expect.objectContaining({
          code: expect.stringMatching(/^(?:invalid_request|unknown_event_type)$/),
        });
        expect(() => readEventTypes(value, catalogue)).toThrow(refusal);
      }),
    );
  });
});

describe("subscribes", () => {
  const pattern = fc.oneof(
    fc.constantFrom(...names),
    fc.constantFrom(...prefixes).map((prefix) => `${prefix}.*`),
    fc.constant("*"),
  );

  it("agrees with the list spelled out", () => {
    fc.assert(
      fc.property(fc.uniqueArray(pattern, { minLength: 1 }), fc.constantFrom(...names), (list, type) => {
        const spelledOut = list.flatMap((wanted) => {
          const prefix = wanted.slice(0, -1);
          return wanted.endsWith("*") ? names.filter((name) => name.startsWith(prefix)) : [wanted];
        });
        expect(subscribes(readEventTypes(list, catalogue), type)).toBe(spelledOut.includes(type));
      }),
    );
  });

  it.each([["patient.created"], ["consent.created", "patient.created"], ["patient.*"], ["*"]])(
    "wants what its list names or covers: %j",
    (...list) => {
      expect(subscribes(list, "patient.created")).toBe(true);
    },
  );

  it("does not take a longer prefix for a shorter one", () => {
    expect(subscribes(["encounter.*"], "encounter-admission.created")).toBe(false);
    expect(subscribes(["document-reference.*"], "document-reference-admission.created")).toBe(false);
  });

  it("wants nothing of a type that is not listed", () => {
    expect(subscribes(["patient.created"], "patient.updated")).toBe(false);
    expect(subscribes(["patient.created"], "patient.created-twice")).toBe(false);
  });
});
