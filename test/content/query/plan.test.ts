/** Which index a list is found by, and what is left to be asked of each row: plans as data. */

import { describe, expect, it } from "vitest";
import { planQuery } from "../../../src/content/query/plan.js";
import type { TermFilter } from "../../../src/content/query/types.js";
import { query } from "../../support/query-site.js";

const category = (fields: Partial<TermFilter> = {}): TermFilter => ({
  taxonomy: "category",
  terms: [7],
  includeChildren: false,
  operator: "OR",
  ...fields,
});

describe("the plan of a list", () => {
  it("goes through all rows of a status, and asks nothing of them, where nothing is asked", () => {
    expect(planQuery(query())).toEqual({
      types: ["post"],
      access: [{ type: "post", status: "publish" }],
      drivingIndexes: [{ by: "all" }],
      checks: [],
      order: { by: "columns", ordering: "date/desc" },
    });
  });

  it("reaches rows by author, parent or term, whichever is rarest, and need not ask for that again", () => {
    const { drivingIndexes, checks } = planQuery(query({ author: [3], parent: [5], terms: [category()] }));
    expect(drivingIndexes).toEqual([
      { by: "author", ids: [3], covers: 0 },
      { by: "parent", ids: [5], covers: 1 },
      { by: "term", taxonomy: "category", terms: [7], includeChildren: false, covers: 2 },
    ]);
    expect(checks.map(({ kind }) => kind)).toEqual(["author", "parent", "terms"]);
  });

  it.each([
    [
      "include",
      { include: [9, 4], slug: ["a"], sticky: true, author: [1] },
      { by: "id", ids: [9, 4], covers: 0 },
    ],
    ["slug", { slug: ["a"], sticky: true, author: [1] }, { by: "slug", slugs: ["a"], covers: 2 }],
    ["sticky", { sticky: true, author: [1] }, { by: "sticky", covers: 0 }],
  ] as const)("reaches rows that %s names by that alone", (_, fields, lead) => {
    expect(planQuery(query(fields)).drivingIndexes).toEqual([lead]);
  });

  it("reaches rows that are in every one of several terms by any of these, and asks for the others", () => {
    const { drivingIndexes } = planQuery(
      query({ terms: [category({ terms: [7, 8], operator: "AND", includeChildren: true })] }),
    );
    expect(drivingIndexes).toEqual([
      { by: "term", taxonomy: "category", terms: [7], includeChildren: false },
      { by: "term", taxonomy: "category", terms: [8], includeChildren: false },
    ]);
  });

  it("is led by no term that a row may lack", () => {
    const not = category({ operator: "NOT" });
    expect(planQuery(query({ terms: [not] })).drivingIndexes).toEqual([{ by: "all" }]);
    expect(planQuery(query({ terms: [category(), not], termRelation: "OR" })).drivingIndexes).toEqual([
      { by: "all" },
    ]);
  });

  it("takes empty lists for no filter", () => {
    const fields = {
      include: [],
      exclude: [],
      author: [],
      authorExclude: [],
      parent: [],
      parentExclude: [],
      slug: [],
      format: [],
      mimeType: [],
      terms: [category({ terms: [] })],
    };
    expect(planQuery(query(fields)).checks).toEqual([]);
  });

  it("puts aside what WordPress puts aside", () => {
    const kinds = (fields: Parameters<typeof query>[0]) => planQuery(query(fields)).checks;
    expect(kinds({ include: [1], exclude: [1] })).toEqual([{ kind: "include", ids: [1] }]);
    expect(kinds({ include: [1], sticky: false })).toEqual([{ kind: "include", ids: [1] }]);
    expect(kinds({ author: [1], authorExclude: [2] })).toEqual([
      { kind: "author", ids: [2], isExcluded: true },
    ]);
    expect(kinds({ parent: [1], parentExclude: [1] })).toEqual([
      { kind: "parent", ids: [1], isExcluded: false },
    ]);
  });

  it("names the check that an order by date answers", () => {
    const plan = planQuery(query({ author: [1], after: 5, orderBy: "title" }));
    expect(plan.checks[plan.dateCheck ?? -1]).toEqual({
      kind: "date",
      after: 5,
      before: Number.POSITIVE_INFINITY,
    });
  });

  it("orders by a list only where it is given, and by relevance only with a search", () => {
    const date = { by: "columns", ordering: "date/asc" };
    for (const orderBy of ["include", "include_slugs", "relevance"] as const) {
      expect(planQuery(query({ orderBy, order: "asc" })).order).toEqual(date);
    }
    expect(planQuery(query({ orderBy: "include", include: [2, 1] })).order).toEqual({
      by: "ids",
      ids: [2, 1],
    });
    expect(planQuery(query({ orderBy: "include_slugs", slug: ["b"] })).order).toEqual({
      by: "slugs",
      slugs: ["b"],
    });
  });

  it("sees of each status what the caller sees of it, and of attachments what he sees of their posts too", () => {
    const own = { author: 4 };
    expect(planQuery(query({ visibility: { publish: "all", draft: own } })).access).toEqual([
      { type: "post", status: "publish" },
      { type: "post", status: "draft", author: 4 },
    ]);
    const media = query({
      type: "attachment",
      visibility: { trash: "all", inherit: own },
      inherited: { publish: "all", draft: own },
    });
    expect(planQuery(media).access.slice(0, 4)).toEqual([
      { type: "attachment", status: "trash" },
      { type: "attachment", status: "inherit/publish" },
      { type: "attachment", status: "inherit/future", author: 4 },
      { type: "attachment", status: "inherit/draft", author: 4, inheritedAuthor: 4 },
    ]);
  });
});
