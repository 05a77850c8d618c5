// A Postgres of its own for the benchmarks, which keeps what it acknowledges; stopped by the caller.
import { execFileSync, spawn } from "node:child_process";
import { chownSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findProgram } from "../scripts/databases-for-tests.js";
import { freePort } from "./support.js";

/** The server does not run as root: there it becomes the user that its package has made. */
function ownUser() {
  if (process.getuid?.() !== 0) return {};
  const id = (flag) => Number(execFileSync("id", [flag, "postgres"], { encoding: "utf8" }));
  return { uid: id("-u"), gid: id("-g") };
}

/** Resolves with its address and a function that stops it; with `undefined` where it is missing. */
export async function startPostgres() {
  let programs;
  try {
    programs = { initdb: findProgram("initdb"), postgres: findProgram("postgres") };
  } catch {
    return undefined;
  }
  const user = ownUser();
  const dir = mkdtempSync(join(tmpdir(), "postbell-bench-"));
  if (user.uid !== undefined) chownSync(dir, user.uid, user.gid);
  const data = join(dir, "data");
  const initialise = ["-D", data, "-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C"];
  execFileSync(programs.initdb, initialise, { ...user, cwd: dir, stdio: "ignore" });
  const port = await freePort();
  const settings = ["listen_addresses=127.0.0.1", "unix_socket_directories=", "shared_buffers=256MB"];
  const child = spawn(
    programs.postgres,
    ["-D", data, "-p", String(port), ...settings.flatMap((setting) => ["-c", setting])],
    { ...user, cwd: dir, stdio: ["ignore", "ignore", "pipe"] },
  );
  await new Promise((resolve, reject) => {
    child.stderr.on("data", (chunk) => String(chunk).includes("ready to accept connections") && resolve());
    child.once("exit", () => reject(new Error("Postgres has ended at its start")));
  });
  return {
    url: `postgres://postgres@127.0.0.1:${port}/postgres`,
    async stop() {
      const exited = new Promise((resolve) => child.once("exit", resolve));
      child.kill("SIGINT");
      await exited;
      rmSync(dir, { recursive: true, force: true });
    },
  };
}
