// Runs a short job with the oldest version of each peer that package.json allows, on the packed
// package. Fails if one of them does not do its job.
import { execFile, execFileSync } from "node:child_process";
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { SMTPServer } from "smtp-server";
import { startPostgres } from "./private-postgres.js";
import { startRedis } from "./private-redis.js";

const root = resolve(import.meta.dirname, "..");
const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
const oldest = Object.fromEntries(
  Object.entries(manifest.peerDependencies).map(([name, range]) => [name, /\d+\.\d+\.\d+/.exec(range)[0]]),
);

async function startMail() {
  const server = new SMTPServer({ authOptional: true, disabledCommands: ["STARTTLS"] });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  return { url: `smtp://127.0.0.1:${server.server.address().port}`, stop: () => server.close() };
}

/** The tarball and the peers, installed as a host installs them: npm refuses what does not fit. */
function install(folder) {
  const pack = ["pack", "--json", "--ignore-scripts", "--pack-destination", folder];
  const [{ filename }] = JSON.parse(execFileSync("npm", pack, { cwd: root, encoding: "utf8" }));
  const sdk = "@opentelemetry/sdk-trace-base";
  const dependencies = {
    [manifest.name]: `file:${filename}`,
    ...oldest,
    [sdk]: manifest.devDependencies[sdk],
  };
  writeFileSync(
    join(folder, "package.json"),
    JSON.stringify({ type: "module", private: true, dependencies }),
  );
  execFileSync("npm", ["install", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"], {
    cwd: folder,
    stdio: "inherit",
  });
}

/** Runs a host, which prints a line for each job. */
async function runHost(folder, file, jobs = {}) {
  copyFileSync(join(root, "scripts", file), join(folder, file));
  const run = promisify(execFile)(process.execPath, [file, JSON.stringify(jobs)], { cwd: folder });
  const { stdout, stderr } = await run.catch((error) => error);
  return [...stdout.trim().split("\n"), ...(stderr === "" ? [] : [stderr.trim()])];
}

const folder = mkdtempSync(join(tmpdir(), "postbell-peers-"));
const servers = [];
try {
  install(folder);
  const [redis, mail] = [await startRedis(), await startMail()];
  servers.push(redis, mail);
  const postgres = await startPostgres().catch(({ message }) => console.log(`Without Postgres: ${message}`));
  if (postgres) servers.push(postgres);
  const jobs = {
    redis: redis.url,
    images: true,
    smtp: mail.url,
    ...(postgres && { postgres: postgres.url }),
  };
  const spans = "201 delivered attempt emit";
  const expected = [
    ...["redis: delivered", "images: 1 × 1", "smtp: sent", ...(postgres ? ["postgres: delivered"] : [])],
    ...["express", "koa", "fastify"].map((framework) => `${framework}: ${spans}`),
    'prometheus: postbell_emit_duration_seconds_count{outcome="stored"} 1, postbell_deliveries_pending 3',
  ];
  const printed = [
    ...(await runHost(folder, "peer-host.js", jobs)),
    ...(await runHost(folder, "peer-frameworks.js")),
  ];
  console.log(
    Object.entries(oldest)
      .map(([name, version]) => `${name} ${version}`)
      .join(", "),
  );
  console.log(printed.join("\n"));
  const missing = expected.filter((line) => !printed.includes(line));
  if (missing.length > 0 || printed.length > expected.length) {
    console.error(`Expected:\n${expected.join("\n")}`);
    process.exitCode = 1;
  }
} finally {
  await Promise.all(servers.map(async (server) => server.stop()));
  rmSync(folder, { recursive: true, force: true });
}
