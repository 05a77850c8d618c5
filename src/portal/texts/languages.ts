/** The languages of the page: those of the package, those of the host, and the check of a table. */

import { german } from "./de.js";
import { english } from "./en.js";
import { isPlural, listValues, type PluralForms, type TextTable } from "./table.js";

/** A table with the same texts as the English one, in any language. */
type Loose<Table> = {
  readonly [Key in keyof Table]: Table[Key] extends string
    ? string
    : Table[Key] extends { other: string }
      ? PluralForms
      : Loose<Table[Key]>;
};

/**
 * The texts of the portal's page in one language. A text names its values in braces, such as
 * `"Signed in as {name}"`. A text about a number has a form for each plural category of its
 * language.
 */
export interface PortalTexts extends Loose<typeof english> {}

/**
 * The texts that the portal has, by language: English and German. Copy one of them to translate it.
 *
 * @example
 * writeFileSync("fr.json", JSON.stringify(portalTexts.en, null, 2));
 */
export const portalTexts: { readonly en: PortalTexts; readonly de: PortalTexts } = Object.freeze({
  en: english,
  de: german,
});

/** The longest text of a table. */
const MAX_TEXT = 2_000;
/** Counts up to here need every plural form that a table must have. */
const MAX_COUNT = 200;

/** Returns the plural categories that a table of a language must have. */
function listPluralForms(language: string): string[] {
  const rules = new Intl.PluralRules(language);
  const counts = Array.from({ length: MAX_COUNT + 1 }, (_, count) => rules.select(count));
  return [...new Set(counts)];
}

interface Faults {
  /** Paths of texts that are missing: `frame.menu`, `jump.resultCount.few`. */
  missing: string[];
  /** Faults of texts, each with its path. */
  wrong: string[];
}

/** Compares a text with the English one, which has the values that it may use. */
function checkText(text: unknown, original: string, path: string, { missing, wrong }: Faults): void {
  if (text === undefined) {
    missing.push(path);
    return;
  }
  if (typeof text !== "string" || text.length > MAX_TEXT) {
    wrong.push(`${path} must be a text of at most ${MAX_TEXT} characters`);
    return;
  }
  const [values, expected] = [listValues(text), listValues(original)];
  const unknown = values.find((name) => !expected.includes(name));
  if (unknown !== undefined) wrong.push(`${path} has no value {${unknown}}`);
  // A form for one thing may say so without the number.
  const lost = expected.find((name) => name !== "count" && !values.includes(name));
  if (lost !== undefined) wrong.push(`${path} must contain {${lost}}`);
}

function checkGroup(group: unknown, original: TextTable, path: string, check: Check): void {
  const { faults } = check;
  const found = (typeof group === "object" && group !== null ? group : {}) as Record<string, unknown>;
  const unknown = Object.keys(found).find((name) => !Object.hasOwn(original, name));
  if (unknown !== undefined) faults.wrong.push(`there is no text ${path}${unknown.slice(0, 80)}`);
  for (const [name, entry] of Object.entries(original)) {
    const at = `${path}${name}`;
    const text = Object.hasOwn(found, name) ? found[name] : undefined;
    if (typeof entry === "string") checkText(text, entry, at, faults);
    else if (isPlural(entry)) checkPlural(text, entry.other, at, check);
    else checkGroup(text, entry, `${at}.`, check);
  }
}

/** Checks the forms that the language needs, and every other one that the table has. */
function checkPlural(text: unknown, original: string, path: string, { faults, forms, categories }: Check) {
  const found = (typeof text === "object" && text !== null ? text : {}) as Record<string, unknown>;
  for (const form of new Set([...forms, ...Object.keys(found)])) {
    if (categories.includes(form)) checkText(found[form], original, `${path}.${form}`, faults);
    else faults.wrong.push(`${path} has no plural form ${form.slice(0, 80)}; use ${categories.join(", ")}`);
  }
}

interface Check {
  faults: Faults;
  /** The plural categories that a table of the language must have. */
  forms: string[];
  /** All plural categories of the language. */
  categories: string[];
}

/** Finds the texts that a table of a language lacks, and those that cannot be used. */
export function findTextFaults(language: string, table: unknown): Faults {
  const faults: Faults = { missing: [], wrong: [] };
  const forms = [...new Set([...listPluralForms(language), "other"])];
  const { pluralCategories } = new Intl.PluralRules(language).resolvedOptions();
  checkGroup(table, english, "", {
    faults,
    forms,
    categories: [...new Set([...forms, ...pluralCategories])].toSorted(),
  });
  return faults;
}

/** A language tag that `Intl` accepts, such as `fr` or `pt-BR`. */
export function isLanguageTag(tag: string): boolean {
  if (!/^[a-z]{2,3}(?:-[A-Za-z0-9]{2,8}){0,2}$/.test(tag)) return false;
  try {
    return Intl.getCanonicalLocales(tag)[0] === tag;
  } catch {
    return false;
  }
}
