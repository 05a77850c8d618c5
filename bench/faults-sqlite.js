// Faults of SQLite: what happens to its file.
import { execFileSync } from "node:child_process";
import { copyFileSync, existsSync, mkdtempSync, renameSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { openDatabase } from "../examples/support/open-database.js";

/** So that deliveries which failed while the endpoint was down are made within the run. */
const RETRY = { intervalsMs: [3_000, 5_000, 10_000], everyMs: 10_000, windowMs: 600_000, jitter: 0 };
const SUFFIXES = ["", "-wal", "-shm"];

export function openFolder() {
  const folder = mkdtempSync(join(tmpdir(), "postbell-faults-"));
  const file = join(folder, "postbell.db");
  return {
    file,
    folder,
    storage: { kind: "sqlite", file },
    close: () => rmSync(folder, { recursive: true, force: true }),
  };
}

/**
 * The file is hurt while the endpoint is down, so that deliveries wait in it. Then the workers
 * crash and others start on what is there.
 */
function hurtThenRestart(hurtFile) {
  const folder = openFolder();
  return {
    ...folder,
    load: { webhooks: { retry: RETRY } },
    async hurt(load) {
      load.endpoint.status = 503;
      await hurtFile(folder, load);
    },
    async heal(load) {
      load.endpoint.status = 200;
      for (const index of load.workers.keys()) await load.replace(index);
    },
    /** The lines that an operator reads. */
    note: ({ logged }) => [...logged.keys()].map((line) => line.slice(0, 120)).join("; "),
  };
}

const deleteFile = ({ file }) => {
  for (const suffix of SUFFIXES) rmSync(`${file}${suffix}`, { force: true });
};

/**
 * A backup is moved over the file, as a restore does. Nothing is emitted between backup and
 * restore: that would be lost by the restore.
 */
async function replaceFile({ file }, load) {
  await load.pause();
  await sleep(500);
  const backup = `${file}.backup`;
  for (const suffix of SUFFIXES.slice(0, 2)) copyFileSync(`${file}${suffix}`, `${backup}${suffix}`);
  for (const suffix of SUFFIXES.slice(0, 2)) renameSync(`${backup}${suffix}`, `${file}${suffix}`);
  rmSync(`${file}-shm`, { force: true });
  await load.resume();
}

function openOtherBuild() {
  const build = process.env.BENCH_BETTER_SQLITE3;
  if (!build) return { skip: "set BENCH_BETTER_SQLITE3 to the path of an installed better-sqlite3" };
  return hurtThenRestart(async ({ file }, { workers }) => {
    for (const worker of workers) await worker.call("useOtherBuild", { build, file });
  });
}

function openRenamed() {
  const { folder, ...scene } = openFolder();
  const away = `${folder}-away`;
  return {
    ...scene,
    hurt: () => renameSync(folder, away),
    heal() {
      // A process that opens the file meanwhile may have made the folder again.
      rmSync(folder, { recursive: true, force: true });
      renameSync(away, folder);
    },
  };
}

/** The file lies on a disk of its own, which another file fills. */
function openFullDisk() {
  const { folder, ...scene } = openFolder();
  try {
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=24m", "none", folder], { stdio: "ignore" });
  } catch {
    scene.close();
    return { skip: "only root may mount a small disk" };
  }
  const filler = join(folder, "filler");
  return {
    ...scene,
    hurt() {
      try {
        execFileSync("dd", ["if=/dev/zero", `of=${filler}`, "bs=64k"], { stdio: "ignore" });
      } catch {
        // It ends when the disk is full, as is wanted.
      }
    },
    heal: () => rmSync(filler),
    close() {
      execFileSync("umount", [folder]);
      scene.close();
    },
  };
}

/** A reader that never ends keeps the log from being moved into the file; 200 MB are written. */
function openLargeLog() {
  const { file, ...scene } = openFolder();
  let reader;
  let writer;
  const log = `${file}-wal`;
  return {
    ...scene,
    async hurt() {
      reader = await openDatabase(file);
      reader.exec("BEGIN; SELECT * FROM sqlite_schema");
      reader.prepare("SELECT count(*) FROM sqlite_schema").all();
      writer = await openDatabase(file);
      writer.exec("PRAGMA busy_timeout = 5000; CREATE TABLE host_notes (t blob)");
      for (let written = 0; written < 100; written++)
        writer.exec("INSERT INTO host_notes VALUES (zeroblob(2000000))");
    },
    heal() {
      writer.exec("DROP TABLE host_notes");
      reader.exec("COMMIT");
      for (const each of [reader, writer]) each.close();
    },
    note: () => `log of ${existsSync(log) ? Math.round(statSync(log).size / 1e6) : 0} MB at the end`,
  };
}

export const sqliteFaults = [
  {
    name: "sqlite-deleted",
    what: "the file is deleted under the processes, which crash 8 s later",
    open: () => hurtThenRestart(deleteFile),
  },
  {
    name: "sqlite-replaced",
    what: "a backup is moved over the file, the processes crash 8 s later",
    open: () => hurtThenRestart(replaceFile),
  },
  { name: "sqlite-renamed", what: "the folder is renamed for 8 s", open: openRenamed },
  {
    name: "sqlite-other-build",
    what: "another build of SQLite opens and closes the file in both processes, which crash 8 s later",
    open: openOtherBuild,
  },
  { name: "sqlite-full", what: "the disk is full for 8 s", open: openFullDisk },
  {
    name: "sqlite-log",
    what: "a reader holds the log for 8 s while 200 MB are written",
    open: openLargeLog,
  },
  {
    name: "sqlite-none",
    what: "nothing, as a comparison",
    open: openFolder,
  },
];
