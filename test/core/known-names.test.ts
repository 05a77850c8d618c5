import { describe, expect, it } from "vitest";
import { describeUnknownKey, findNearest, refuseUnknownKeys } from "../../src/core/known-names.js";
import { clinicalEvents } from "../../src/webhooks/event-types/clinical-events.js";

const TYPES = Object.keys(clinicalEvents);

describe("the nearest name", () => {
  it.each([
    ["secret", ["body", "secrets"], "secrets"],
    ["acount", ["account", "limit"], "account"],
    ["Retry", ["retry", "notify"], "retry"],
    ["warn", ["warning", "disabled"], "warning"],
    ["warnMs", ["warnAfterMs", "disableAfterMs"], "warnAfterMs"],
    ["tolerance", ["toleranceMs", "now"], "toleranceMs"],
    ["retries", ["retry", "limits"], "retry"],
    ["allowHTTP", ["allowHttp", "allow"], "allowHttp"],
    ["uri", ["url", "status"], "url"],
    ["consent.update", TYPES, "consent.updated"],
    ["PATIENT.CREATED", TYPES, "patient.created"],
    ["pateint.updated", TYPES, "patient.updated"],
    ["abc", ["abd", "abe"], "abd"],
    ["flies", ["files", "site"], "files"],
    ["rul", ["url", "status"], "url"],
  ])("of %j is found", (name, candidates, nearest) => {
    expect(findNearest(name, candidates)).toBe(nearest);
  });

  it.each([
    ["order.*", ["consent.*", "encounter.*", "patient.*"]],
    ["order.created", TYPES],
    ["order.*", TYPES],
    ["patient.x", TYPES],
    ["patient", TYPES],
    ["invoice.paid", TYPES],
    ["account", ["as"]],
    ["as", ["account", "limit"]],
    ["a", ["webhookId", "state"]],
    ["x", []],
    ["", ["url"]],
    ["frobnicate", ["storage", "access", "retry"]],
    ["x".repeat(1e6), TYPES],
  ])("is not invented for %j", (name, candidates) => {
    expect(findNearest(name, candidates)).toBeUndefined();
  });
});

describe("an unknown key", () => {
  it("is refused with the nearest key, or with all of them", () => {
    expect(describeUnknownKey("call() has no field", "limt", ["limit", "cursor"])).toBe(
      "call() has no field 'limt'; did you mean 'limit'?",
    );
    expect(describeUnknownKey("call() has no field", "size", ["limit", "cursor"])).toBe(
      "call() has no field 'size'; it takes 'limit', 'cursor'.",
    );
    expect(describeUnknownKey("call() has no field", "k".repeat(1e6), ["a"])).toBe(
      `call() has no field '${"k".repeat(40)}'; it takes 'a'.`,
    );
  });

  it("is an invalid_argument with the key as field, and known keys are accepted", () => {
    expect(() => refuseUnknownKeys("call", { limt: 1 }, ["limit"])).toThrow(
      expect.objectContaining({ code: "invalid_argument", field: "limt" }),
    );
    refuseUnknownKeys("call", { limit: 1 }, ["limit"]);
    refuseUnknownKeys("call", {}, []);
  });
});
