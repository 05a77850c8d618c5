// A Postgres server for programs that are not tests: benchmarks, and the cases of the content
// interface.
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { chownSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { findProgram } from "./databases-for-tests.js";
import { freePort } from "./private-redis.js";

/** Postgres does not run as root: there it runs as the user that its package created. */
function findUser() {
  if (process.getuid?.() !== 0) return {};
  const read = (what) => Number(execFileSync("id", [what, "postgres"], { encoding: "utf8" }));
  return { uid: read("-u"), gid: read("-g") };
}

/** Resolves when the server takes connections. Rejects with its log if it ends before. */
function launch(program, args, options) {
  const child = spawn(program, args, { ...options, stdio: ["ignore", "ignore", "pipe"] });
  return new Promise((resolve, reject) => {
    const log = [];
    child.once("error", reject);
    child.once("exit", () => reject(new Error(`postgres did not start:\n${log.join("\n")}`)));
    createInterface(child.stderr).on("line", (line) => {
      if (line.includes("ready to accept connections")) resolve(child);
      else if (log.length < 100) log.push(line);
    });
  });
}

/**
 * A Postgres server of this process's own, which ends with it. `settings` are those of
 * `postgresql.conf`. Throws, with what to do, if Postgres is not on this machine.
 *
 * @param {Record<string, string>} settings
 */
export async function startPostgres(settings = {}) {
  const [initdb, postgres] = ["initdb", "postgres"].map(findProgram);
  const user = findUser();
  const dir = mkdtempSync(join(tmpdir(), "postbell-postgres-"));
  const remove = () => rmSync(dir, { recursive: true, force: true, maxRetries: 5 });
  process.once("exit", remove);
  if (user.uid !== undefined) chownSync(dir, user.uid, user.gid);
  const data = join(dir, "data");
  const as = { ...user, cwd: dir };
  const identity = ["-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C"];
  execFileSync(initdb, ["-D", data, ...identity, "--no-sync"], { ...as, stdio: "ignore" });
  const port = await freePort();
  const given = { listen_addresses: "127.0.0.1", unix_socket_directories: "", ...settings };
  const named = Object.entries(given).flatMap(([name, setting]) => ["-c", `${name}=${setting}`]);
  const child = await launch(postgres, ["-D", data, "-p", `${port}`, ...named], as);
  const kill = () => child.kill("SIGKILL");
  process.prependOnceListener("exit", kill);
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.once(signal, () => process.exit(1));
  return {
    url: `postgres://postgres@127.0.0.1:${port}/postgres`,
    async stop() {
      process.removeListener("exit", kill);
      // At once, but with time to end the processes of its connections.
      child.kill("SIGQUIT");
      if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
      remove();
    },
  };
}
