// Writes the tables of docs/options.md from the option tables and the docstrings of their types:
// `npm run docs:options`. `test/package/readme.test.ts` fails if the page is stale.
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { build } from "esbuild";
import ts from "typescript";
import { filesBelow, root, TOP_ROOMS } from "./house.js";

export const OPTIONS_PAGE = "docs/options.md";

/**
 * The heading of each table, the type that a host sees, and the table of defaults and units.
 *
 * @type {readonly { heading: string, type: string, table: string, file: string }[]}
 */
const FACTORIES = [
  ["createWebhooks", "WebhooksOptions", "webhooksOptions", "src/webhooks/options.ts"],
  ["memoryStorage", "MemoryStorageOptions", "memoryStorageOptions", "storage/memory/options.ts"],
  ["sqliteStorage", "SqliteStorageOptions", "sqliteStorageOptions", "storage/sqlite/options.ts"],
  ["postgresStorage", "PostgresStorageOptions", "postgresStorageOptions", "storage/postgres/options.ts"],
  ["redisStorage", "RedisStorageOptions", "redisStorageOptions", "storage/redis/options.ts"],
  ["createReceiver", "ReceiverOptions", "receiverOptions", "src/receiver/options.ts"],
  ["outbox", "OutboxOptions", "outboxOptions", "src/outbox/options.ts"],
  ["createContent", "ContentOptions", "contentOptions", "src/content/options.ts"],
  [
    "createApplicationPasswords",
    "ApplicationPasswordOptions",
    "applicationPasswordOptions",
    "src/content/options.ts",
  ],
  ["createNonces", "NonceOptions", "nonceOptions", "src/content/hosting/nonces.ts"],
  ["smtpNotifier", "SmtpNotifierOptions", "smtpNotifierOptions", "adapters/smtp/options.ts"],
  ["sharpImages", "SharpImagesOptions", "sharpImagesOptions", "adapters/sharp/sharp-images.ts"],
  ["s3Files", "S3FilesOptions", "s3FilesOptions", "adapters/s3.ts"],
  ["createPortal", "PortalOptions", "portalOptions", "src/portal/options.ts"],
].map(([heading = "", type = "", table = "", file = ""]) => ({ heading, type, table, file }));

/** @typedef {import("../src/core/options.js").OptionTable} OptionTable */

const sources = TOP_ROOMS.flatMap((room) => filesBelow(room, /\.ts$/)).map((file) => ({
  file,
  text: readFileSync(join(root, file), "utf8"),
}));

/**
 * Returns the members of an exported interface. Its name is unique in the package.
 *
 * @param {string} name
 * @returns {readonly ts.TypeElement[]}
 */
function membersOf(name) {
  const declares = new RegExp(`^export interface ${name}\\b`, "m");
  const source = sources.find(({ text }) => declares.test(text));
  if (!source) throw new Error(`No file exports the interface ${name}.`);
  const parsed = ts.createSourceFile(source.file, source.text, ts.ScriptTarget.Latest, true);
  const found = parsed.statements.find(
    (statement) => ts.isInterfaceDeclaration(statement) && statement.name.text === name,
  );
  return found && ts.isInterfaceDeclaration(found) ? found.members : [];
}

/**
 * Returns the type with all members, of a type that depends on the catalogue.
 *
 * @param {ts.TypeNode | undefined} type
 * @returns {ts.TypeNode | undefined}
 */
function fullTypeOf(type) {
  if (type && ts.isConditionalTypeNode(type)) return fullTypeOf(type.falseType);
  if (!type || !ts.isTypeReferenceNode(type)) return type;
  const declares = new RegExp(`^type ${type.typeName.getText()}<C>`, "m");
  const source = sources.find(({ text }) => declares.test(text));
  if (!source) return type;
  const parsed = ts.createSourceFile(source.file, source.text, ts.ScriptTarget.Latest, true);
  const alias = parsed.statements.find(
    (statement) => ts.isTypeAliasDeclaration(statement) && declares.test(statement.getText()),
  );
  return alias && ts.isTypeAliasDeclaration(alias) ? fullTypeOf(alias.type) : type;
}

/** @param {ts.TypeElement} member @returns {readonly ts.TypeElement[]} */
function membersBelow(member) {
  const type = ts.isPropertySignature(member) ? fullTypeOf(member.type) : undefined;
  for (const part of type && ts.isUnionTypeNode(type) ? type.types : [type]) {
    if (part && ts.isTypeLiteralNode(part)) return part.members;
    if (part && ts.isTypeReferenceNode(part)) return membersOf(part.typeName.getText());
  }
  return [];
}

/** @param {ts.TypeElement | undefined} member */
function docstringOf(member) {
  const [comment] = member ? ts.getJSDocCommentsAndTags(member).filter(ts.isJSDoc) : [];
  const text = ts.getTextOfJSDocComment(comment?.comment) ?? "";
  return text
    .replace(/\{@link (\w+)\}/g, "`$1`")
    .replace(/\s+/g, " ")
    .replaceAll("|", "\\|");
}

/** Splits at a full stop, but not within code spans, where options have their examples. */
const sentencesOf = (/** @type {string} */ text) =>
  text.match(/(?:`[^`]*`|[^`.]|\.(?! |$))+(?:\. |\.$|$)/g)?.map((sentence) => sentence.trim()) ?? [];

/** @param {unknown} value */
const grouped = (value) => String(value).replace(/\B(?=(\d{3})+$)/g, Number(value) >= 1000 ? "_" : "");

/** @param {unknown} preset @param {string | undefined} inWords */
function shownDefault(preset, inWords) {
  if (preset === undefined) return "–";
  if (preset === null) return "none";
  if (typeof preset === "number") return `\`${grouped(preset)}\``;
  if (typeof preset === "string" || typeof preset === "boolean") return `\`${preset}\``;
  if (Array.isArray(preset)) return `\`[${preset.map(grouped).join(", ")}]\``;
  return Object.keys(preset).length === 0 ? "`{}`" : (inWords ?? "the system's");
}

/**
 * @param {OptionTable} table
 * @param {readonly ts.TypeElement[]} members
 * @param {string} [path]
 * @returns {string[]}
 */
function rowsOf(table, members, path = "") {
  return Object.entries(table).flatMap(([key, entry]) => {
    const member = members.find(({ name }) => name?.getText() === key);
    if (!member) throw new Error(`The option ${path}${key} is not in the type.`);
    if (typeof entry["expected"] !== "function")
      return rowsOf(/** @type {OptionTable} */ (entry), membersBelow(member), `${path}${key}.`);
    const option = /** @type {import("../src/core/options.js").Option<unknown>} */ (entry);
    const sentences = sentencesOf(docstringOf(member));
    const [meaning = "As in `createWebhooks`."] = sentences.filter(
      (text) => !/^(?:Default|Required\.)/.test(text),
    );
    const preset = sentences.find((text) => text.startsWith("Default"));
    const inWords = preset?.replace(/^Default:? /, "").replace(/(?:[,;] .*)?\.$/, "");
    const isUnset = option.default === undefined && inWords !== "none";
    const parts = [
      member.questionToken || option.default !== undefined ? "" : "Required. ",
      meaning,
      isUnset && preset ? ` ${preset}` : "",
    ];
    return [
      `| \`${path}${key}\` | ${shownDefault(option.default, inWords)} | ${option.unit} | ${parts.join("")} |`,
    ];
  });
}

/**
 * Replaces the rows of every table of options.
 *
 * @param {string} page
 * @param {{ readonly [table: string]: OptionTable }} tables the option tables by their names
 */
export function updateOptionsPage(page, tables) {
  return FACTORIES.reduce((text, { heading, type, table }) => {
    const place = new RegExp(
      `(^## ${heading}\\n(?:(?!#).*\\n)*?\\| Option .*\\n\\|[-|]*\\n)(?:\\|.*\\n)*`,
      "m",
    );
    if (!place.test(text)) throw new Error(`${OPTIONS_PAGE} has no table below "## ${heading}".`);
    const rows = rowsOf(tables[table] ?? {}, membersOf(type));
    return text.replace(place, (_, head) => `${head}${rows.join("\n")}\n`);
  }, page);
}

async function loadTables() {
  const contents = FACTORIES.map(({ table, file }) => `export { ${table} } from "./${file}";`).join("\n");
  const outfile = join(root, "node_modules/.cache/option-tables.mjs");
  await build({
    stdin: { contents, resolveDir: root },
    outfile,
    bundle: true,
    platform: "node",
    format: "esm",
    packages: "external",
    loader: { ".lua": "text", ".sql": "text" },
    logLevel: "error",
  });
  const tables = await import(pathToFileURL(outfile).href);
  rmSync(outfile);
  return tables;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const path = resolve(root, OPTIONS_PAGE);
  writeFileSync(path, updateOptionsPage(readFileSync(path, "utf8"), await loadTables()));
}
