import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseFields, pickFields } from "../../../src/content/rest/serialise.js";
import type { Json } from "../../../src/schema/types.js";

const pick = (value: Json, fields: Json): unknown => {
  const selection = parseFields(fields);
  return JSON.parse(JSON.stringify(selection === undefined ? value : pickFields(value, selection)));
};

const post = {
  id: 1,
  title: { raw: "a", rendered: "<b>a</b>" },
  tags: [1, 2],
  meta: {},
  _links: { self: [] },
};

describe("_fields", () => {
  it("leaves the members that are named, in the order of the answer", () => {
    expect(Object.keys(pick(post, "title,id") as object)).toEqual(["id", "title"]);
    expect(pick(post, " id , tags ")).toEqual({ id: 1, tags: [1, 2] });
    expect(pick(post, ["id", "tags,meta"])).toEqual({ id: 1, tags: [1, 2], meta: {} });
  });

  it("leaves members of members; the whole counts before its parts", () => {
    expect(pick(post, "title.raw,id")).toEqual({ id: 1, title: { raw: "a" } });
    expect(pick(post, "title,title.raw")).toEqual({ title: post.title });
    expect(pick(post, "title.raw,title")).toEqual({ title: post.title });
    expect(pick(post, "title.none")).toEqual({ title: [] });
    expect(pick(post, "id.none,tags.none")).toEqual({ id: 1, tags: [] });
  });

  it("leaves an empty list where nothing is left, and everything where nothing is named", () => {
    expect(pick(post, "bogus")).toEqual([]);
    for (const nothing of ["", " , ", [], 5, null]) expect(pick(post, nothing)).toEqual(post);
  });

  it("goes through the entries of a list", () => {
    expect(pick([post, { id: 2 }], "id")).toEqual([{ id: 1 }, { id: 2 }]);
    expect(pick([post], "bogus")).toEqual([[]]);
    expect(pick([], "id")).toEqual([]);
  });

  it("does not mind how large it is or what is in it", () => {
    expect(pick(post, "__proto__,constructor,toString")).toEqual([]);
    expect(pick(post, `id,${"a.".repeat(100_000)}b`)).toEqual({ id: 1 });
    expect(pick(post, `id,${"x,".repeat(500_000)}`)).toEqual({ id: 1 });
  });

  it("leaves nothing that was not there, whatever is named", () => {
    const json = fc.jsonValue({ maxDepth: 4 }) as fc.Arbitrary<Json>;
    fc.assert(
      fc.property(fc.dictionary(fc.string(), json), fc.string(), (object, fields) => {
        const left = pick(object, fields) as object;
        const isSmaller = ([name, value]: [string, unknown]): boolean =>
          Object.hasOwn(object, name) && JSON.stringify(value).length <= JSON.stringify(object[name]).length;
        expect(Object.entries(left).every(isSmaller)).toBe(true);
      }),
    );
  });
});
