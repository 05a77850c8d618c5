// Checks that the tests find a Redis server that they can start and kill. If they do not, it says
// what to run. With --install, as `npm run servers` calls it, installs one.
import { spawnSync } from "node:child_process";
import { accessSync, constants, realpathSync } from "node:fs";
import { delimiter, join } from "node:path";

const SERVERS = ["redis-server", "valkey-server"];
const INSTALLERS = ["apt-get", "brew", "docker", "sudo"];

/**
 * Returns what to run, given what is installed.
 *
 * @param {object} machine
 * @param {ReadonlySet<string>} machine.programs those on the PATH
 * @param {() => string[] | undefined} machine.asRoot what to put before a command that needs root;
 * undefined where there is no way
 * @returns {{ ready: boolean, ways: string[][][], remedy: string }} ways to install a server, the
 * best first, and what to do by hand when no way is left
 */
export function decide({ programs, asRoot }) {
  if (SERVERS.some((name) => programs.has(name))) return { ready: true, ways: [], remedy: "" };
  const ways = [];
  const root = programs.has("apt-get") ? asRoot() : undefined;
  if (root) ways.push(withApt(root));
  if (programs.has("brew")) ways.push([["brew", "install", "redis"]]);
  return { ready: false, ways, remedy: programs.has("docker") ? DOCKER : BY_HAND };
}

/**
 * The distribution starts the server on port 6379 as it installs it, unless the machine's own
 * policy-rc.d forbids that. That service is stopped again; the tests start their own. It stays
 * enabled, so it is back after the next boot of a machine that boots services.
 */
function withApt(root) {
  const apt = [...root, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-qq"];
  return [
    [...apt, "update"],
    [...apt, "install", "-y", "--no-install-recommends", "redis-server"],
    [...root, "service", "redis-server", "stop"],
  ];
}

const ONE_COMMAND =
  "No Redis server for the tests, which start and kill their own. This command installs one: npm run servers";
const DOCKER =
  'No Redis server for the tests, which start and kill their own. Run them in a container: docker run --rm -v "$PWD":/app -w /app node:22-bookworm bash -c "npm ci && npm run servers && npm test"';
const BY_HAND =
  "No Redis server for the tests, which start and kill their own. Install redis-server or valkey-server.";

function isOnPath(name) {
  return (process.env.PATH ?? "").split(delimiter).some((folder) => {
    try {
      accessSync(join(folder, name), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

function rootPrefix() {
  if (process.getuid?.() === 0) return [];
  const sudo = ["sudo", "-n"];
  return isOnPath("sudo") && spawnSync("sudo", ["-n", "true"]).status === 0 ? sudo : undefined;
}

/**
 * A step may fail harmlessly, as an update does when one of many sources is away: what counts is
 * the server at the end.
 */
function install(way) {
  console.log(
    `No Redis server for the tests. Running: ${way.map((command) => command.join(" ")).join("; ")}`,
  );
  for (const [command, ...args] of way) spawnSync(command, args, { stdio: ["ignore", "ignore", "inherit"] });
  return SERVERS.some(isOnPath);
}

if (process.argv[1] && realpathSync(process.argv[1]) === import.meta.filename) {
  const programs = new Set([...SERVERS, ...INSTALLERS].filter(isOnPath));
  const { ready, ways, remedy } = decide({ programs, asRoot: rootPrefix });
  const mayInstall = process.argv.includes("--install");
  if (!ready && !(mayInstall && ways.some(install))) {
    console.error(mayInstall || ways.length === 0 ? remedy : ONE_COMMAND);
    process.exitCode = 1;
  }
}
