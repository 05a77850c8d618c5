/** `/menu-locations` and the field `locations` of menus over a real socket. */

import { describe, expect, it } from "vitest";
import type { ContentStorage } from "../../../src/content/store.js";
import { isPostbellError } from "../../../src/core/errors.js";
import { contentSite } from "../../support/content-site.js";
import { CALLERS, type SocketCall, serveContent } from "../../support/content-socket.js";
import { CONTENT_STORAGES } from "../../support/content-storages.js";

const as = "administrator";
const LOCATIONS = {
  primary: { description: "Main navigation" },
  "footer_2-b": { description: "Below every page" },
};

const serve = (storage?: ContentStorage, menuLocations: typeof LOCATIONS | undefined = LOCATIONS) =>
  serveContent(contentSite({ menuLocations, ...(storage === undefined ? {} : { storage }) }));

const createMenu = async (call: SocketCall, name: string, locations?: string[]) =>
  (await call("POST /menus", { as, body: { name, ...(locations === undefined ? {} : { locations }) } })).body;

const readMenus = async (call: SocketCall) => {
  const { body } = await call("GET /menu-locations", { as });
  return Object.fromEntries(Object.keys(body).map((name) => [name, body[name].menu]));
};

describe("menu locations", () => {
  it("are for those who design the site", async () => {
    const { call, origin } = await serve();
    const at = `${origin}/core/v2/menu-locations`;
    const primary = {
      name: "primary",
      description: "Main navigation",
      menu: 0,
      _links: { self: [{ href: `${at}/primary` }], collection: [{ href: at }] },
    };
    const read = async (as: (typeof CALLERS)[number]) => ({
      all: await call("GET /menu-locations", { as }),
      one: await call("GET /menu-locations/primary?context=edit", { as }),
      unknown: await call("GET /menu-locations/other", { as }),
    });
    const shown = await read("administrator");
    expect(Object.keys(shown.all.body)).toEqual(Object.keys(LOCATIONS));
    expect([shown.all.body.primary, shown.one.body]).toEqual([primary, primary]);
    expect([shown.unknown.status, shown.unknown.body.code]).toEqual([404, "rest_menu_location_invalid"]);
    for (const as of CALLERS.filter((role) => role !== "administrator")) {
      const { all, one, unknown } = await read(as);
      for (const { status, body } of [all, one, unknown]) {
        expect([status, body.code], as).toEqual([as ? 403 : 401, "rest_cannot_view"]);
      }
    }
  });

  it("do not exist by default", async () => {
    const { call } = await serveContent(contentSite());
    expect((await call("GET /menu-locations", { as })).body).toEqual({});
    const { status, body } = await call("POST /menus", { as, body: { name: "A", locations: ["primary"] } });
    expect([status, body.data.details.locations.code]).toEqual([400, "rest_invalid_menu_location"]);
  });

  it("are described to clients", async () => {
    const { call } = await serve();
    const { body } = await call("OPTIONS /menu-locations/primary", { as });
    expect(body.schema).toMatchObject({ title: "menu-location", properties: { menu: { readonly: true } } });
    expect(Object.keys(body.endpoints[0].args)).toEqual(["location", "context"]);
    const menus = await call("OPTIONS /menus", { as });
    expect(menus.body.endpoints[1].args.locations).toMatchObject({
      type: "array",
      items: { type: "string" },
    });
  });
});

describe.each(CONTENT_STORAGES)("menus at locations on %s", (_, open) => {
  it("are assigned when they are created and updated, by one process for all", async () => {
    const storage = open();
    const { call, origin } = await serve(storage);
    const other = await serve(storage);
    const first = await createMenu(call, "First", ["primary"]);
    expect(first.locations).toEqual(["primary"]);
    expect(await readMenus(other.call)).toEqual({ primary: first.id, "footer_2-b": 0 });
    const { body: shown } = await other.call("GET /menu-locations/primary?_embed=1", { as });
    expect(shown._links["wp:menu"]).toEqual([
      { href: `${other.origin}/core/v2/menus/${first.id}`, embeddable: true },
    ]);
    expect(shown._embedded["wp:menu"]).toMatchObject([{ id: first.id, name: "First" }]);

    // A location shows one menu: the second takes it from the first.
    const second = await createMenu(call, "Second", ["primary", "footer_2-b"]);
    expect(await readMenus(other.call)).toEqual({ primary: second.id, "footer_2-b": second.id });
    const { body } = await call(`GET /menus/${first.id}`, { as });
    expect([body.locations, body._links["wp:menu-location"]]).toEqual([[], undefined]);

    const path = `/menus/${second.id}`;
    const updated = await other.call(`PUT ${path}`, { as, body: { locations: ["footer_2-b"] } });
    expect(updated.body.locations).toEqual(["footer_2-b"]);
    expect(await readMenus(call)).toEqual({ primary: 0, "footer_2-b": second.id });
    const { body: linked } = await call(`GET ${path}`, { as });
    expect(linked._links["wp:menu-location"]).toEqual([
      { href: `${origin}/core/v2/menu-locations/footer_2-b`, embeddable: true },
    ]);
    await call(`PUT ${path}`, { as, body: { name: "Renamed" } });
    expect(await readMenus(call)).toEqual({ primary: 0, "footer_2-b": second.id });

    await call(`DELETE ${path}?force=true`, { as });
    expect(await readMenus(other.call)).toEqual({ primary: 0, "footer_2-b": 0 });
  });

  it("survive concurrent assignments", async () => {
    const storage = open();
    const calls = [(await serve(storage)).call, (await serve(storage)).call];
    const [a, b] = await Promise.all(
      calls.map((call, at) => createMenu(call, `Menu ${at}`, [Object.keys(LOCATIONS)[at] ?? ""])),
    );
    for (const call of calls) expect(await readMenus(call)).toEqual({ primary: a.id, "footer_2-b": b.id });
  });
});

describe("a menu that the host chose", () => {
  it("is shown until it is taken away", async () => {
    // On a new site, the first menu has the id after the default category.
    const site = contentSite({ menuLocations: { primary: { description: "Main", menu: 2 } } });
    const { call } = await serveContent(site);
    expect(await readMenus(call)).toEqual({ primary: 0 });
    const { id, locations } = await createMenu(call, "First");
    expect([id, locations, await readMenus(call)]).toEqual([2, ["primary"], { primary: 2 }]);
    await call("PUT /menus/2", { as, body: { locations: [] } });
    expect(await readMenus(call)).toEqual({ primary: 0 });
  });

  it("is shown at a location with the name of a member that all objects have", async () => {
    const locations = [["constructor", { description: "Main", menu: 2 }] as const];
    const site = contentSite({ menuLocations: Object.fromEntries(locations) });
    const { call } = await serveContent(site);
    const { id } = await createMenu(call, "First");
    expect(await readMenus(call)).toEqual({ constructor: id });
  });

  it("is never a term of another taxonomy", async () => {
    const site = contentSite({ menuLocations: { primary: { description: "Main", menu: 1 } } });
    const { call } = await serveContent(site);
    expect(await readMenus(call)).toEqual({ primary: 0 });
  });
});

describe("the field locations", () => {
  it("is written by those who design the site, and names known locations only", async () => {
    const { call } = await serve();
    const { id } = await createMenu(call, "First");
    for (const as of CALLERS) {
      const { status, body } = await call(`POST /menus/${id}`, { as, body: { locations: ["primary"] } });
      const expected = as === "administrator" ? [200, ["primary"]] : [as ? 403 : 401, undefined];
      expect([status, body.locations], as).toEqual(expected);
    }
    for (const locations of [
      ["primary", "other"],
      [["primary"]],
      ["constructor"],
      Array(101).fill("primary"),
    ]) {
      const { status, body } = await call(`PUT /menus/${id}`, { as, body: { locations } });
      expect([status, body.code]).toEqual([400, "rest_invalid_param"]);
    }
    expect(await readMenus(call)).toEqual({ primary: id, "footer_2-b": 0 });
    const category = await call("POST /categories", { as, body: { name: "A", locations: ["primary"] } });
    expect(category.body).not.toHaveProperty("locations");
    expect((await readMenus(call))["primary"]).toBe(id);
  });
});

describe("the option menuLocations", () => {
  it.each([
    [{ "a b": { description: "" } }, "menuLocations"],
    [{ a: {} }, "menuLocations.a"],
    [{ a: null }, "menuLocations.a"],
    [{ a: { description: "", menu: -1 } }, "menuLocations.a.menu"],
    [[], "menuLocations"],
  ])("refuses %j", (menuLocations, field) => {
    expect(() => contentSite({ menuLocations: menuLocations as never })).toThrow(
      expect.toSatisfy((error) => isPostbellError(error, "invalid_option") && error.field === field),
    );
  });
});
