/**
 * Validates the data of events with a host's JSON Schema, within a budget of steps and levels. The
 * data comes from whoever the host serves: no data may cost more than a fraction of a second.
 */

import type { SchemaMistake } from "../schema/describe-arguments.js";
import type { Json, JsonObject } from "../schema/types.js";
import type { Budget } from "./budget.js";
import { isJsonObject } from "./keywords.js";
import { Pattern } from "./pattern.js";
import { type ReadSchema, readSchema } from "./read-schema.js";
import { type Check, CompiledSchema, Evaluated, Validation } from "./validation.js";
import { FIND_STEPS, NAME_STEPS, VALUE_TESTS } from "./value-checks.js";

/** Why data does not match a schema. */
export interface DataMistake {
  /** `.lines.0.total`. Names that the schema does not state are replaced by `*`. */
  path: string;
  keyword: string;
}

/** A schema of a host, ready to validate data. */
export class DataSchema {
  /** A copy: later changes of the host have no effect. */
  readonly json: JsonObject;
  #compiled: CompiledSchema;

  constructor(read: ReadSchema) {
    this.json = read.schema;
    this.#compiled = new Compiler(read).compileAll(read.schema);
  }

  /**
   * Returns the first mistake of data that JSON.parse returned.
   *
   * @throws {TooComplexError} if that costs more than the budget.
   */
  findMistake(data: Json, budget: Budget): DataMistake | undefined {
    const validation = new Validation(budget);
    return this.#compiled.accepts(data, validation) ? undefined : validation.mistake;
  }
}

/** Reads the schema of a host, or returns its first mistake. */
export function parseDataSchema(value: unknown): { schema: DataSchema } | { mistake: SchemaMistake } {
  const read = readSchema(value);
  return "mistake" in read ? read : { schema: new DataSchema(read) };
}

type Members = [name: string, schema: CompiledSchema][];

/** Compiles each schema once, so that a recursive one refers to itself. */
class Compiler {
  #references: Map<JsonObject, Json>;
  #compiled = new Map<Json, CompiledSchema>();

  constructor({ references }: ReadSchema) {
    this.#references = references;
  }

  compileAll(schema: JsonObject): CompiledSchema {
    const compiled = this.compile(schema);
    // One after the other: references may lead through thousands of schemas.
    for (const [inner, target] of this.#compiled) if (isJsonObject(inner)) this.#addChecks(target, inner);
    return compiled;
  }

  /** Returns the compiled schema, which has its checks when all are compiled. */
  compile(schema: Json): CompiledSchema {
    const found = this.#compiled.get(schema);
    if (found !== undefined) return found;
    const compiled = new CompiledSchema(schema === false);
    this.#compiled.set(schema, compiled);
    return compiled;
  }

  #addChecks(compiled: CompiledSchema, schema: JsonObject): void {
    for (const [keyword, makeTest] of Object.entries(VALUE_TESTS)) {
      const argument = schema[keyword];
      if (argument === undefined) continue;
      const test = makeTest(argument);
      compiled.checks.push((value, validation) => test(value, validation) || validation.fail(keyword));
    }
    const target = this.#references.get(schema);
    if (target !== undefined) compiled.checks.push(checkReference(this.compile(target)));
    compiled.checks.push(...this.#checkMembers(schema), ...this.#checkItems(schema));
    compiled.checks.push(...this.#checkInPlace(schema));
    const { unevaluatedItems, unevaluatedProperties } = schema;
    compiled.isTracking = unevaluatedItems !== undefined || unevaluatedProperties !== undefined;
    if (unevaluatedItems !== undefined)
      compiled.checks.push(checkUnevaluatedItems(this.compile(unevaluatedItems)));
    if (unevaluatedProperties !== undefined)
      compiled.checks.push(checkUnevaluatedProperties(this.compile(unevaluatedProperties)));
  }

  #compileMembers(members: Json | undefined): Members {
    const entries = isJsonObject(members) ? Object.entries(members) : [];
    return entries.map(([name, schema]) => [name, this.compile(schema)]);
  }

  #compileList(list: Json | undefined): CompiledSchema[] {
    return Array.isArray(list) ? list.map((schema: Json) => this.compile(schema)) : [];
  }

  #checkMembers(schema: JsonObject): Check[] {
    const { properties, patternProperties, additionalProperties, propertyNames } = schema;
    const checks: Check[] = [];
    const byName = new Map(this.#compileMembers(properties));
    const byPattern = this.#compileMembers(patternProperties).map(
      ([source, inner]) => [new Pattern(source), inner] as const,
    );
    if (propertyNames !== undefined) checks.push(checkNames(this.compile(propertyNames)));
    if (byName.size > 0) checks.push(checkProperties(byName));
    if (byPattern.length > 0 || additionalProperties !== undefined) {
      const others = additionalProperties === undefined ? undefined : this.compile(additionalProperties);
      checks.push(checkOtherProperties(byName, byPattern, others));
    }
    return checks;
  }

  #checkItems(schema: JsonObject): Check[] {
    const { prefixItems, items, additionalItems, contains, minContains = 1, maxContains } = schema;
    const checks: Check[] = [];
    const first = this.#compileList(Array.isArray(items) ? items : prefixItems);
    // In draft 7 `items` may be a list, and `additionalItems` is about what follows it.
    const rest = Array.isArray(items) ? additionalItems : items;
    if (first.length > 0 || rest !== undefined)
      checks.push(checkEachItem(first, rest === undefined ? undefined : this.compile(rest)));
    if (contains !== undefined) {
      const max = maxContains === undefined ? Number.POSITIVE_INFINITY : Number(maxContains);
      checks.push(checkContains(this.compile(contains), [Number(minContains), max]));
    }
    return checks;
  }

  #checkInPlace(schema: JsonObject): Check[] {
    const { allOf, anyOf, oneOf, not, if: condition, dependentSchemas, dependencies } = schema;
    const checks: Check[] = this.#compileList(allOf).map(checkWith);
    for (const rules of [dependencies, dependentSchemas])
      for (const [name, rule] of Object.entries(rules ?? {})) checks.push(this.#checkDependency(name, rule));
    if (condition !== undefined) {
      const branches = [schema["then"] ?? true, schema["else"] ?? true].map((one) => this.compile(one));
      checks.push(checkCondition(this.compile(condition), branches));
    }
    if (oneOf !== undefined) checks.push(checkAlternatives(this.#compileList(oneOf), "oneOf"));
    if (anyOf !== undefined) checks.push(checkAlternatives(this.#compileList(anyOf), "anyOf"));
    if (not !== undefined) {
      const inner = this.compile(not);
      checks.push((value, validation) => !inner.accepts(value, validation) || validation.fail("not"));
    }
    return checks;
  }

  #checkDependency(name: string, rule: Json): Check {
    const isNames = Array.isArray(rule);
    const test = isNames ? VALUE_TESTS["dependentRequired"]?.({ [name]: rule }) : undefined;
    if (test !== undefined)
      return (value, validation) => test(value, validation) || validation.fail("dependencies");
    const schema = this.compile(rule);
    return (value, validation, evaluated) =>
      !isJsonObject(value) || !Object.hasOwn(value, name) || schema.accepts(value, validation, evaluated);
  }
}

const checkWith =
  (schema: CompiledSchema): Check =>
  (value, validation, evaluated) =>
    schema.accepts(value, validation, evaluated);

const checkReference =
  (schema: CompiledSchema): Check =>
  (value, validation, evaluated) =>
    evaluated === undefined
      ? validation.validateOnce(schema, value)
      : schema.accepts(value, validation, evaluated);

const checkNames =
  (schema: CompiledSchema): Check =>
  (value, validation) => {
    if (!isJsonObject(value)) return true;
    const names = Object.keys(value);
    validation.budget.spend(NAME_STEPS * names.length);
    return names.every((name) => schema.accepts(name, validation)) || validation.fail("propertyNames");
  };

function checkProperties(byName: Map<string, CompiledSchema>): Check {
  const names = [...byName.keys()];
  return (value, validation, evaluated) => {
    if (!isJsonObject(value)) return true;
    validation.budget.spend(FIND_STEPS * names.length);
    for (const name of names) {
      if (!Object.hasOwn(value, name)) continue;
      if (byName.get(name)?.accepts(value[name] ?? null, validation) === false)
        return validation.failWithin(name);
      evaluated?.addName(name);
    }
    return true;
  };
}

/** `patternProperties`, and `additionalProperties` for the names that no other keyword states. */
function checkOtherProperties(
  byName: Map<string, CompiledSchema>,
  byPattern: readonly (readonly [Pattern, CompiledSchema])[],
  others: CompiledSchema | undefined,
): Check {
  return (value, validation, evaluated) => {
    if (!isJsonObject(value)) return true;
    const { budget } = validation;
    for (const name of Object.keys(value)) {
      budget.spend(NAME_STEPS);
      const isKnown = byName.has(name);
      let isStated = isKnown;
      for (const [pattern, schema] of byPattern) {
        if (!pattern.matches(name, budget)) continue;
        isStated = true;
        evaluated?.addName(name);
        if (!schema.accepts(value[name] ?? null, validation))
          return validation.failWithin(isKnown ? name : undefined);
      }
      if (isStated || others === undefined) continue;
      if (!others.accepts(value[name] ?? null, validation)) return failOfOthers(others, validation);
    }
    noteAll(others, evaluated);
    return true;
  };
}

/** With a schema for the rest, every name or item was looked at. */
function noteAll(rest: CompiledSchema | undefined, evaluated: Evaluated | undefined): void {
  if (rest !== undefined && evaluated !== undefined) evaluated.isComplete = true;
}

/** Of the schema `false`, the name itself is the mistake. */
const failOfOthers = (others: CompiledSchema, validation: Validation): false =>
  others.isFalse ? validation.fail("additionalProperties") : validation.failWithin(undefined);

function checkEachItem(first: CompiledSchema[], rest: CompiledSchema | undefined): Check {
  return (value, validation, evaluated) => {
    if (!Array.isArray(value)) return true;
    const items: Json[] = value;
    for (let index = 0; index < items.length; index += 1) {
      const schema = first[index] ?? rest;
      if (schema === undefined) break;
      if (!schema.accepts(items[index] ?? null, validation)) return validation.failWithin(String(index));
      if (rest === undefined) evaluated?.addItem(index);
    }
    noteAll(rest, evaluated);
    return true;
  };
}

function checkContains(schema: CompiledSchema, [min, max]: [number, number]): Check {
  return (value, validation, evaluated) => {
    if (!Array.isArray(value)) return true;
    let count = 0;
    for (const [index, item] of (value as Json[]).entries()) {
      if (!schema.accepts(item, validation)) continue;
      count += 1;
      evaluated?.addItem(index);
      if (count > max || (count >= min && max === Number.POSITIVE_INFINITY && evaluated === undefined)) break;
    }
    if (count < min) return validation.fail(min === 1 ? "contains" : "minContains");
    return count <= max || validation.fail("maxContains");
  };
}

function checkCondition(condition: CompiledSchema, branches: CompiledSchema[]): Check {
  return (value, validation, evaluated) => {
    const branch = evaluated && new Evaluated(validation.budget);
    const isMet = condition.accepts(value, validation, branch);
    if (isMet && branch !== undefined) evaluated?.addAll(branch);
    return branches[isMet ? 0 : 1]?.accepts(value, validation, evaluated) !== false;
  };
}

function checkAlternatives(alternatives: CompiledSchema[], keyword: "anyOf" | "oneOf"): Check {
  const isOne = keyword === "oneOf";
  return (value, validation, evaluated) => {
    let count = 0;
    for (const alternative of alternatives) {
      const branch = evaluated && new Evaluated(validation.budget);
      if (!alternative.accepts(value, validation, branch)) continue;
      count += 1;
      if (branch !== undefined) evaluated?.addAll(branch);
      // Without tracking, the first match decides.
      if (isOne ? count > 1 : branch === undefined) break;
    }
    return count === 1 || (count > 1 && !isOne) || validation.fail(keyword);
  };
}

function checkUnevaluatedProperties(schema: CompiledSchema): Check {
  return (value, validation, evaluated) => {
    if (!isJsonObject(value) || evaluated === undefined || evaluated.isComplete) return true;
    for (const name of Object.keys(value)) {
      validation.budget.spend(NAME_STEPS);
      if (evaluated.hasName(name)) continue;
      if (!schema.accepts(value[name] ?? null, validation)) return validation.fail("unevaluatedProperties");
    }
    evaluated.isComplete = true;
    return true;
  };
}

function checkUnevaluatedItems(schema: CompiledSchema): Check {
  return (value, validation, evaluated) => {
    if (!Array.isArray(value) || evaluated === undefined || evaluated.isComplete) return true;
    for (const [index, item] of (value as Json[]).entries()) {
      validation.budget.spend(1);
      if (evaluated.hasItem(index)) continue;
      if (!schema.accepts(item, validation)) return validation.fail("unevaluatedItems");
    }
    evaluated.isComplete = true;
    return true;
  };
}
