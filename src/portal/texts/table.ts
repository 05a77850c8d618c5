/**
 * The texts of the page: how a table of one language is written, and how the page uses it. Pure.
 *
 * A table is data, so that a host can add a language as JSON. A text names its values in braces:
 * `"{done} of {total} sent"`. A text about a number has a form for each plural category of the
 * language, chosen by `count`: `{ one: "{count} delivery", other: "{count} deliveries" }`.
 */

/** The forms of a text about a number. The names are the plural categories of Unicode CLDR. */
export interface PluralForms {
  zero?: string;
  one?: string;
  two?: string;
  few?: string;
  many?: string;
  other: string;
}

export interface TextTable {
  readonly [name: string]: string | PluralForms | TextTable;
}

/** The names of the values in a text. */
type ValueName<Text extends string> = Text extends `${string}{${infer Name}}${infer Rest}`
  ? Name | ValueName<Rest>
  : never;

/** A text that takes values. Values that are not text, such as a link, give a list of parts. */
interface Fill<Name extends string> {
  (values: { [Key in Name]: string | number }): string;
  <Part>(values: { [Key in Name]: string | number | Part }): (string | Part)[];
}

/**
 * The texts of a table as the page uses them: a text, or a function of its values. Numbers are
 * written as the language writes them.
 */
export type TextsOf<Table> = {
  readonly [Key in keyof Table]: Table[Key] extends string
    ? [ValueName<Table[Key]>] extends [never]
      ? string
      : Fill<ValueName<Table[Key]>>
    : Table[Key] extends { other: infer Other extends string }
      ? (values: { count: number } & { [Name in ValueName<Other>]: string | number }) => string
      : TextsOf<Table[Key]>;
};

/** All of several types. */
type Both<Union> = (Union extends unknown ? (each: Union) => void : never) extends (each: infer All) => void
  ? All
  : never;

/** A text with the same values as another. */
type TextLike<Text extends string> = [ValueName<Text>] extends [never]
  ? string
  : Both<ValueName<Text> extends infer Name extends string ? `${string}{${Name}}${string}` : never>;

/** A table with the same texts, each with the same values. */
export type TranslationOf<Table> = {
  readonly [Key in keyof Table]: Table[Key] extends string
    ? TextLike<Table[Key]>
    : Table[Key] extends { other: string }
      ? PluralForms
      : TranslationOf<Table[Key]>;
};

const VALUE = /\{([a-z][a-z0-9]{0,19})\}/i;

/** Returns the names of the values in a text. */
export const listValues = (text: string): string[] => text.split(VALUE).filter((_, index) => index % 2 === 1);

export const isPlural = (entry: PluralForms | TextTable): entry is PluralForms =>
  typeof entry.other === "string";

type Values = Record<string, unknown>;

/** Prepares a table for the page. `locale`: a BCP 47 tag that numbers and plurals follow. */
export function createTexts<Table extends TextTable>(locale: string, table: Table): TextsOf<Table> {
  const numbers = new Intl.NumberFormat(locale);
  const plurals = new Intl.PluralRules(locale);
  const fill = (text: string, values: Values): string | unknown[] => {
    const parts = text.split(VALUE).map((part, index) => {
      const value = index % 2 === 0 ? part : values[part];
      return typeof value === "number" ? numbers.format(value) : value;
    });
    return parts.every((part) => typeof part === "string") ? parts.join("") : parts;
  };
  const prepare = (entry: TextTable[string]): unknown => {
    if (typeof entry === "string") return VALUE.test(entry) ? (values: Values) => fill(entry, values) : entry;
    if (isPlural(entry))
      return (values: Values & { count: number }) =>
        fill(entry[plurals.select(values.count)] ?? entry.other, values);
    return Object.fromEntries(Object.entries(entry).map(([name, below]) => [name, prepare(below)]));
  };
  return prepare(table) as TextsOf<Table>;
}
