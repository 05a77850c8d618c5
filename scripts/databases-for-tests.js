// Sees to it that `npm run test:databases` finds a Postgres and a MariaDB that it can start and
// kill. Says nothing where both are there.
import { accessSync, constants, existsSync, readdirSync, realpathSync } from "node:fs";
import { delimiter, join } from "node:path";

const PROGRAMS = ["initdb", "postgres", "mariadb-install-db", "mariadbd"];
/** Where Debian keeps the servers of Postgres, a folder for each version. */
const POSTGRES = "/usr/lib/postgresql";

function isProgram(path) {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** @param {string} name */
function pathOf(name) {
  const versions = existsSync(POSTGRES) ? readdirSync(POSTGRES).sort((a, b) => Number(b) - Number(a)) : [];
  const folders = [
    ...(process.env.PATH ?? "").split(delimiter),
    ...versions.map((version) => join(POSTGRES, version, "bin")),
    // On the PATH of root only.
    "/usr/sbin",
  ];
  return folders.map((folder) => join(folder, name)).find(isProgram);
}

const REMEDY =
  "The tests of the outbox start a Postgres and a MariaDB of their own. On Debian: apt-get install postgresql mariadb-server. On macOS: brew install postgresql mariadb.";

/**
 * The path of a program of a server. Throws, with what to do, where it is not on this machine.
 *
 * @param {string} name
 */
export function findProgram(name) {
  const path = pathOf(name);
  if (path === undefined) throw new Error(`${name} was not found. ${REMEDY}`);
  return path;
}

if (process.argv[1] && realpathSync(process.argv[1]) === import.meta.filename) {
  const absent = PROGRAMS.filter((name) => pathOf(name) === undefined);
  if (absent.length > 0) {
    console.error(`Not on this machine: ${absent.join(", ")}. ${REMEDY}`);
    process.exitCode = 1;
  }
}
