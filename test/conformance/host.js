// The target of the conformance cases: the built package in a host on the loopback, with one user
// in each role. `node test/conformance/host.js [core|wp] [host]` serves until it is ended, and prints
// the options under which another runner finds it. The hosts are in hosts.js.

import { mkdtempSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { createContent } from "postbell/content";
import { memoryFiles } from "postbell/files";
import { sharpImages } from "postbell/images";
import { memoryStorage } from "postbell/memory";
import { HOSTS } from "./hosts.js";
import { EMAILS, OWN_OPTIONS } from "./own-site.js";

const ROLES = ["administrator", "editor", "author", "contributor", "subscriber"];
/** A site with types, taxonomies, fields and a role of its own has one more user. */
const OWN_ROLES = [...ROLES, "reviewer"];
/** As the cases call them. */
const nameOf = (role) => (role === "administrator" ? "admin" : role);
/** The path of the interface, as on a WordPress site. */
const PREFIX = "/wp-json";
/** All that follow neither from the options of the site nor from its records. */
const WRITABLE_SETTINGS = [
  "title",
  "description",
  "email",
  "date_format",
  "time_format",
  "start_of_week",
  "language",
  "use_smilies",
  "default_post_format",
  "posts_per_page",
  "show_on_front",
  "page_on_front",
  "page_for_posts",
  "default_ping_status",
  "default_comment_status",
  "site_logo",
  "site_icon",
];
const tokenOf = (role) => `token-of-${nameOf(role)}`;

/**
 * A site of its own, `plain`, `own` with the types of `own-site.js`, or `berlin`, the same in
 * another time zone: `namespace` is `core` or `wp`, `host` a name of `HOSTS`; content is in
 * `storage`, which is closed with it. Gives what `playCase` needs, and `close()`.
 */
export async function startHost({
  namespace,
  host = "node:http",
  storage = memoryStorage(),
  site: kind = "plain",
}) {
  const roles = kind === "plain" ? ROLES : OWN_ROLES;
  const timezone = kind === "berlin" ? "Europe/Berlin" : "UTC";
  const own = kind === "plain" ? {} : OWN_OPTIONS;
  const server = createServer();
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const site = `http://127.0.0.1:${server.address().port}`;
  const users = roles.map((role, index) => ({
    id: index + 1,
    slug: role,
    name: `${role[0].toUpperCase()}${role.slice(1)}`,
    email: `${kind === "plain" ? role : (EMAILS[role] ?? role[0])}@example.org`,
    roles: [role],
  }));
  const idOf = new Map(users.map(({ id, roles: [role] }) => [`Bearer ${tokenOf(role)}`, id]));
  const content = createContent({
    storage,
    files: memoryFiles(),
    images: sharpImages(),
    site: {
      url: site,
      name: "Conformance",
      description: "d",
      timezone,
      ...(kind === "plain" ? {} : { templates: ["tall.php"] }),
    },
    namespace,
    authenticate: ({ headers }) => {
      const id = idOf.get(headers.authorization);
      return id === undefined ? null : { id };
    },
    users,
    menuLocations: { primary: { description: "Primary" } },
    settings: { values: { email: "a@example.org" }, writable: WRITABLE_SETTINGS },
    cors: { origins: ["https://example.org"] },
    unknownPaths: "answer",
    ...own,
  });
  await HOSTS[host]({ server, service: content, prefix: PREFIX });
  return {
    base: site + PREFIX,
    site,
    namespace: `${namespace}/v2`,
    auth: Object.fromEntries(
      roles.map((role) => [nameOf(role), { headers: { Authorization: `Bearer ${tokenOf(role)}` } }]),
    ),
    async close() {
      await content.stop?.();
      server.close();
      server.closeAllConnections();
      await storage.close();
    },
  };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { base, namespace, auth } = await startHost({
    namespace: process.argv[2] ?? "core",
    host: process.argv[3],
  });
  const file = join(mkdtempSync(join(tmpdir(), "postbell-conformance-")), "auth.json");
  writeFileSync(file, JSON.stringify(auth));
  console.log(`--base ${base} --namespace ${namespace} --auth ${file}`);
}
