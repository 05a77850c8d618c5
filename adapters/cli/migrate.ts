/** `postbell migrate`: creates the tables on Postgres, or brings them up to date. */

import { postgresStorage } from "../../storage/postgres/index.js";
import { defineCommand, EXIT, refuseOperands, wrongUsage } from "./command.js";

/** Takes the place of an address, because the statements are the same for every server. */
const NO_SERVER = "postgres://localhost";

export const migratePostgres = defineCommand({
  usage: "migrate --postgres URL [options]",
  summary: "create the tables of postgresStorage() on Postgres, or bring them up to date",
  details: `Runs what is missing in one transaction. It is safe to repeat, and to run in several processes at once.

  --postgres URL      Postgres of the storage: postgres://...; the default is the environment variable
                      POSTBELL_POSTGRES. Use that for a URL with a password, because other users of this
                      machine can read it in the list of processes
  --schema NAME       schema of the tables, as given to postgresStorage(); default postbell
  --print             print the SQL of all versions, and connect to no server
  --json              print the result as JSON`,
  options: {
    postgres: { type: "string", default: "" },
    schema: { type: "string", default: "postbell" },
    print: { type: "boolean", default: false },
    json: { type: "boolean", default: false },
  },
  read({ postgres, schema, print, json }, operands) {
    refuseOperands(operands);
    return { postgres, schema, isPrinted: print, json };
  },
  async run({ postgres, schema, isPrinted, json }, { env, stdout }) {
    const url = isPrinted ? NO_SERVER : postgres || env["POSTBELL_POSTGRES"] || "";
    if (url === "") {
      throw wrongUsage("--postgres is missing, and POSTBELL_POSTGRES is not set: give the URL of Postgres.");
    }
    const storage = postgresStorage({ url, schema });
    try {
      if (isPrinted) {
        const migrations = storage.migrations();
        stdout.write(json ? `${JSON.stringify({ schema, migrations })}\n` : formatSql(migrations));
        return EXIT.done;
      }
      const { version } = await storage.migrate();
      stdout.write(
        json
          ? `${JSON.stringify({ schema, version })}\n`
          : `The schema ${schema} is up to date: layout ${version}.\n`,
      );
      return EXIT.done;
    } finally {
      await storage.close();
    }
  },
});

/** Each version is one transaction, as `postbell migrate` runs it. */
const formatSql = (migrations: readonly { version: number; sql: string }[]): string =>
  migrations.map(({ version, sql }) => `-- Layout ${version}\nBEGIN;\n${sql}\nCOMMIT;\n`).join("\n");
