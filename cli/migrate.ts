/** `postbell migrate`: creates the tables of the storage on Postgres, or brings them up to date. */

import { type PostgresStorage, postgresStorage } from "../storage/postgres/index.js";
import { defineCommand, EXIT, refuseOperands, wrongUsage } from "./command.js";

/** Opens the storage, whose errors name the options of `postgresStorage`. */
function openPostgres(url: string, schema: string): PostgresStorage {
  try {
    return postgresStorage({ url, schema });
  } catch (error) {
    // The message of another error could quote the URL, with its password.
    throw wrongUsage(
      error instanceof Error && error.message.includes("schema")
        ? "--schema must be at most 48 letters, digits and underscores, not first a digit."
        : "--postgres must be a postgres:// URL.",
    );
  }
}

export const migrate = defineCommand({
  usage: "migrate [--postgres URL] [options]",
  summary: "create the tables of the storage on Postgres, or bring them up to date",
  details: `  --postgres URL      default: DATABASE_URL in the environment, where no other user sees its password
  --schema NAME       default: postbell
  --print             print the SQL of all steps, the oldest first, instead of running it
  --json              print the version of the tables as JSON

Several processes may do so at once. A schema of a newer version of Postbell is refused.`,
  options: {
    postgres: { type: "string", default: "" },
    schema: { type: "string", default: "postbell" },
    print: { type: "boolean", default: false },
    json: { type: "boolean", default: false },
  },
  read({ postgres, schema, print, json }, operands) {
    refuseOperands(operands);
    return { postgres, schema, print, json };
  },
  async run({ postgres, schema, print, json }, { env, stdout }) {
    const url = postgres || (env["DATABASE_URL"] ?? "");
    if (url === "" && !print) throw wrongUsage("--postgres is missing, and so is DATABASE_URL.");
    const storage = openPostgres(url || "postgres://localhost", schema);
    try {
      if (print) {
        stdout.write(
          storage
            .migrations()
            .map(({ version, sql }) => `-- ${version}\nBEGIN;\n${sql}\nCOMMIT;\n`)
            .join("\n"),
        );
        return EXIT.done;
      }
      const { version } = await storage.migrate();
      const text = `The tables in ${schema} have version ${version}.`;
      stdout.write(`${json ? JSON.stringify({ schema, version }) : text}\n`);
      return EXIT.done;
    } finally {
      await storage.close();
    }
  },
});
