import { describe, expect, it } from "vitest";
import { clinicalEvents } from "../../../src/index.js";
import {
  actionOf,
  countCovered,
  describeEventTypes,
  findOtherPatterns,
  findReceivers,
  groupEventTypes,
  searchEventTypes,
  togglePattern,
  wildcardOf,
} from "../../../src/portal/app/webhooks/event-types.js";

const catalogue = Object.keys(clinicalEvents);
const groups = groupEventTypes(catalogue);

describe("event types by record", () => {
  it("are all there, each once, under a title in words", () => {
    expect(groups.flatMap(({ types }) => types).sort()).toEqual([...catalogue].sort());
    expect(catalogue).toHaveLength(50);
    expect(groups[0]).toMatchObject({ name: "allergy-intolerance", title: "Allergy intolerance" });
    const actions = groups.map((group) => group.types.map((type) => actionOf(group, type)));
    expect(new Set(actions.flat())).toEqual(new Set(["created", "updated", "deleted"]));
  });

  it("keep records apart if the name of one begins with that of another", () => {
    const patterns = groups.map(wildcardOf);
    expect(patterns).toContain("encounter.*");
    expect(patterns).toContain("encounter-admission.*");
  });

  it("are found by a part of their title or their name", () => {
    const found = (text: string) => searchEventTypes(groups, text).flatMap(({ types }) => types);
    expect(found("episode of")).toEqual(groups.find(({ name }) => name === "episode-of-care")?.types);
    expect(found("PATIENT.DEL")).toEqual(["patient.deleted"]);
    expect(found("no such thing")).toEqual([]);
    expect(found(" ")).toHaveLength(50);
  });
});

describe("a choice of event types", () => {
  it("has a wildcard in place of the types that it covers", () => {
    const some = togglePattern(new Set(["patient.created", "consent.created"]), "patient.*");
    expect([...some]).toEqual(["consent.created", "patient.*"]);
    expect([...togglePattern(some, "patient.*")]).toEqual(["consent.created"]);
  });

  it("counts the types that it covers", () => {
    expect(countCovered(catalogue, new Set())).toBe(0);
    expect(countCovered(catalogue, new Set(["patient.*", "consent.created"]))).toBe(4);
    expect(countCovered(catalogue, new Set(["*"]))).toBe(50);
  });

  it("keeps patterns that no record has", () => {
    expect(findOtherPatterns(groups, new Set(["lab.report.*", "patient.*"]))).toEqual(["lab.report.*"]);
  });

  it("is named in short", () => {
    expect(describeEventTypes(null)).toBe("All event types");
    expect(describeEventTypes(["*"])).toBe("All event types");
    expect(describeEventTypes(["a.b", "c.d"])).toBe("a.b, c.d");
    expect(describeEventTypes(["a", "b", "c", "d", "e", "f"])).toBe("a, b, c, d and 2 more");
  });
});

describe("the webhooks that get an event type", () => {
  it("are those with its name, with the pattern of one of its prefixes, or with all types", () => {
    const subscriptions = [
      { id: "all", event_types: ["*"] },
      { id: "name", event_types: ["invoice.payment.failed"] },
      { id: "prefix", event_types: ["order.*", "invoice.*"] },
      { id: "longer", event_types: ["invoice.payment.*"] },
      { id: "none", event_types: ["invoices.*", "invoice.payment", "invoice.payment.faile"] },
    ];
    const found = findReceivers(subscriptions, "invoice.payment.failed").map(({ id }) => id);
    expect(found).toEqual(["all", "name", "prefix", "longer"]);
  });
});
