/**
 * A host of the console on loopback, over memory, and a browser that looks at it as one of the
 * users.
 */

import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { Browser, Page } from "playwright-core";
import { nodeAdapter } from "../../../adapters/node.js";
import { createPortal, type PortalOptions } from "../../../src/portal/index.js";
import type { JsonObject } from "../../../src/schema/types.js";
import { manualClock } from "../../../src/testing/manual-clock.js";
import { memoryFiles } from "../../../storage/files/index.js";
import { contentSite, idOf, type Role } from "../../support/content-site.js";
import { listen } from "../../support/hosts.js";
import { open, type Watched } from "./chromium.js";

const fixtures = JSON.parse(
  readFileSync(new URL("../../conformance/fixtures.json", import.meta.url), "utf8"),
) as Record<string, { base64: string }>;

export const fixture = (name: string): Buffer => Buffer.from(fixtures[name]?.base64 ?? "", "base64");

export async function contentHost(
  browser: Browser,
  {
    editUrl,
    timezone = "UTC",
    ...limits
  }: { uploadBytes?: number; timezone?: string } & Pick<PortalOptions, "editUrl"> = {},
) {
  const clock = manualClock(Date.UTC(2026, 10, 22, 9));
  const content = contentSite({
    clock,
    files: memoryFiles(),
    limits,
    site: { url: "http://localhost", name: "Example", timezone },
  });
  const portal = createPortal({
    content,
    title: "The clinic's site",
    editUrl,
    authorize: ({ headers }) => {
      const role = /role=(\w+)/.exec(headers["cookie"] ?? "")?.[1] as Role | undefined;
      return role === undefined ? null : { name: `The ${role}`, userId: idOf(role) };
    },
  });
  const running = await listen(createServer(nodeAdapter(portal, { prefix: "/portal" })));
  const pages: Watched[] = [];

  return {
    /** The content service's. */
    clock,
    content,
    origin: running.origin,
    /** A page of somebody in the role, at a view of the console. */
    async visit(role: Role, view: string, options: Parameters<typeof open>[2] = {}): Promise<Page> {
      const watched = await open(browser, running.origin, options);
      const { page } = watched;
      pages.push(watched);
      await page.context().addCookies([{ name: "role", value: role, url: running.origin }]);
      await page.goto(`${running.origin}/portal/#${view}`);
      await page.getByRole("main").getByRole("heading", { level: 1 }).waitFor();
      return page;
    },
    async request(as: Role, line: string, body?: JsonObject) {
      const [method = "", address = ""] = line.split(" ");
      const [path = "", search = ""] = address.split("?");
      const answer = await content.request({
        method,
        path: `/core/v2${path}`,
        query:
          method === "GET" ? { context: "edit", ...Object.fromEntries(new URLSearchParams(search)) } : {},
        body,
        as: idOf(as),
      });
      return answer.body as ReturnType<typeof JSON.parse>;
    },
    /** Takes reports out of the faults: those that an attack must cause. */
    forgive(expected: RegExp): void {
      for (const { faults } of pages)
        faults.splice(0, faults.length, ...faults.filter((fault) => !expected.test(fault)));
    },
    /**
     * Answers what the pages did that they never must: break their policy, fail, ask another
     * origin.
     */
    async close(): Promise<readonly string[]> {
      for (const { page } of pages) await page.context().close();
      await running.close();
      return pages.flatMap(({ faults }) => faults);
    },
  };
}
