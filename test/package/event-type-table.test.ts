import { expect, it } from "vitest";
import { clinicalEvents } from "../../src/index.js";
import { guides } from "../support/markdown.js";

it("the guide for subscribers lists every event type with the resource of its record", () => {
  const guide = guides.find(({ path }) => path === "docs/guides/subscribe.md")?.text ?? "";
  const rows = [...guide.matchAll(/^\| ((?:`[a-z.-]+`(?:, )?)+) \| `(\w+)` \|$/gm)];
  const listed = rows.flatMap(([, types = "", resource]) =>
    [...types.matchAll(/`([a-z.-]+)`/g)].map(([, type]) => [type, resource]),
  );
  expect(listed).toHaveLength(50);
  expect(Object.fromEntries(listed)).toEqual(clinicalEvents);
});
