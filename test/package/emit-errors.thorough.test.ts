/**
 * The errors of the compiler for a wrong `emit`: one line that names the field at fault, and never
 * the whole catalogue. Checked with the compiler itself, in the ways in which hosts run it.
 */

import { join, resolve } from "node:path";
import ts from "typescript";
import { describe, expect, it } from "vitest";

const folder = resolve(import.meta.dirname);

const MODES: Readonly<Record<string, ts.CompilerOptions>> = {
  strict: { strict: true },
  "exact optional properties": { strict: true, exactOptionalPropertyTypes: true },
  "not strict": { strict: false },
};

const PRELUDE = `import { type ClinicalEvents, type ClinicalEventType, type Emitted, type EventCatalogue, type EventData, type EventInput, type FhirResource, type Webhooks, clinicalEvents, createWebhooks } from "../../src/index.js";
import type { Encounter, Patient } from "fhir/r4.js";
import * as z from "zod";
declare const required: Parameters<typeof createWebhooks>[0];
const { storage, access } = required;
declare const patient: Patient;
declare const encounter: Encounter;
declare const type: string;
declare const parsed: any;
const account = "clinic-7";
const webhooks = createWebhooks({ storage, access });
const own = createWebhooks({ storage, access, events: { "invoice.paid": "Invoice", "person.merged": ["Person", "Patient"] } });
const both = createWebhooks({ storage, access, events: { ...clinicalEvents, "invoice.paid": "Invoice" } });
const schema = z.object({ order: z.string(), total: z.int() });
const shopEvents = { "order.paid": { schema }, "order.noted": {} };
const mixedEvents = { ...shopEvents, "invoice.paid": "Invoice" } as const;
const shop = createWebhooks({ storage, access: { authenticate: () => null, canRead: () => true }, events: shopEvents });
const data = { order: "A-1", total: 4200 };
`;

/** A call that is wrong, and the first line of its only error. */
const MISTAKES: readonly (readonly [what: string, call: string, firstLine: string])[] = [
  [
    "an unknown type",
    '{ type: "patient.update", account, resource: patient }',
    "Type '\"patient.update\"' is not assignable to type 'keyof ClinicalEvents'. Did you mean '\"patient.updated\"'?",
  ],
  [
    "a missing account",
    '{ type: "patient.updated", resource: patient }',
    "Argument of type '{ type: \"patient.updated\"; resource: Patient; }' is not assignable to parameter of type 'EventInput<keyof ClinicalEvents>'.",
  ],
  [
    "a missing resource",
    '{ type: "patient.updated", account }',
    "Argument of type '{ type: \"patient.updated\"; account: string; }' is not assignable to parameter of type 'EventInput<keyof ClinicalEvents>'.",
  ],
  [
    "a resource without resourceType",
    '{ type: "patient.updated", account, resource: { id: "1" } }',
    "Type '{ id: string; }' is not assignable to type 'FhirResource'.",
  ],
  [
    "a resource of another type",
    '{ type: "patient.updated", account, resource: encounter }',
    "Type 'Encounter' is not assignable to type 'ResourceOf<\"Patient\">'.",
  ],
  [
    "a literal of another type",
    '{ type: "patient.updated", account, resource: { resourceType: "Encounter", id: "1", status: "planned" } }',
    "Type '\"Encounter\"' is not assignable to type '\"Patient\"'.",
  ],
  [
    "a time that is a number",
    '{ type: "patient.updated", account, resource: patient, occurredAt: 5 }',
    "Type 'number' is not assignable to type 'string | Date | undefined'.",
  ],
  [
    "a list with an unknown type",
    '[{ type: "patient.updated", account, resource: patient }, { type: "patient.update", account, resource: patient }]',
    "Type '\"patient.update\"' is not assignable to type 'keyof ClinicalEvents'. Did you mean '\"patient.updated\"'?",
  ],
  [
    "a list with a resource of another type",
    '[{ type: "patient.updated", account, resource: patient }, { type: "patient.updated", account, resource: encounter }]',
    "Type 'Encounter' is not assignable to type 'ResourceOf<\"Patient\">'.",
  ],
  [
    "a list with a missing account",
    '[{ type: "patient.updated", account, resource: patient }, { type: "patient.updated", resource: patient }]',
    "Property 'account' is missing in type '{ type: \"patient.updated\"; resource: Patient; }' but required in type 'EventInput<keyof ClinicalEvents>'.",
  ],
  [
    "an unknown property",
    '{ type: "patient.updated", account, resource: patient, at: 1 }',
    "Object literal may only specify known properties, and 'at' does not exist in type 'EventInput<keyof ClinicalEvents>'.",
  ],
  [
    "an id that is a number",
    '{ type: "patient.updated", account, resource: patient, id: 7 }',
    "Type 'number' is not assignable to type 'string'.",
  ],
  [
    "a type that is any string",
    "{ type, account, resource: patient }",
    "Type 'string' is not assignable to type 'keyof ClinicalEvents'.",
  ],
  [
    "related that is no list",
    '{ type: "patient.updated", account, resource: patient, related: patient }',
    "Type 'Patient' is missing the following properties from type 'readonly FhirResource[]': length, concat, join, slice, and 26 more.",
  ],
  [
    "related without resourceType",
    '{ type: "patient.updated", account, resource: patient, related: [{ id: "1" }] }',
    "Type '{ id: string; }' is not assignable to type 'FhirResource'.",
  ],
  [
    "text",
    '"patient.updated"',
    "Argument of type 'string' is not assignable to parameter of type 'EventInput<keyof ClinicalEvents> | readonly EventInput<keyof ClinicalEvents>[]'.",
  ],
];

/** The same for hosts with a catalogue of their own. */
const OWN_MISTAKES: readonly (readonly [what: string, statement: string, firstLine: string])[] = [
  [
    "an own type with a resource of another type",
    'own.emit({ type: "invoice.paid", account, resource: patient });',
    "Type 'Patient' is not assignable to type 'ResourceOf<\"Invoice\">'.",
  ],
  [
    "an own type with several resource types",
    'own.emit({ type: "person.merged", account, resource: encounter });',
    "Type 'Encounter' is not assignable to type 'ResourceOf<\"Patient\" | \"Person\">'.",
  ],
  [
    "an unknown type of an own catalogue",
    'own.emit({ type: "invoice.pay", account, resource: patient });',
    'Type \'"invoice.pay"\' is not assignable to type \'"invoice.paid" | "person.merged"\'. Did you mean \'"invoice.paid"\'?',
  ],
  [
    "an unknown type of an extended catalogue",
    'both.emit({ type: "invoice.pay", account, resource: patient });',
    "Type '\"invoice.pay\"' is not assignable to type 'keyof ClinicalEvents | \"invoice.paid\"'. Did you mean '\"invoice.paid\"'?",
  ],
  [
    "an own type of an extended catalogue",
    'both.emit({ type: "invoice.paid", account, resource: patient });',
    "Type 'Patient' is not assignable to type 'ResourceOf<\"Invoice\">'.",
  ],
  [
    "data with another type",
    'shop.emit({ type: "order.paid", account, data: { order: "A-1", total: "4200" } });',
    "Type 'string' is not assignable to type 'number'.",
  ],
  [
    "data without one of its fields",
    'shop.emit({ type: "order.paid", account, data: { order: "A-1" } });',
    "Property 'total' is missing in type '{ order: string; }' but required in type '{ order: string; total: number; }'.",
  ],
  [
    "data with a field that the schema does not have",
    'shop.emit({ type: "order.paid", account, data: { ...data, paid: true } });',
    "Object literal may only specify known properties, and 'paid' does not exist in type '{ order: string; total: number; }'.",
  ],
  [
    "a plain event without data",
    'shop.emit({ type: "order.paid", account });',
    'Argument of type \'{ type: "order.paid"; account: string; }\' is not assignable to parameter of type \'PlainEventInput<"order.paid" | "order.noted", { order: string; total: number; }>\'.',
  ],
  [
    "a plain event with a resource",
    'shop.emit({ type: "order.paid", account, data, resource: patient });',
    "Object literal may only specify known properties, and 'resource' does not exist in type 'PlainEventInput<\"order.paid\" | \"order.noted\", { order: string; total: number; }>'.",
  ],
  [
    "an unknown type of plain events",
    'shop.emit({ type: "order.payd", account, data });',
    'Type \'"order.payd"\' is not assignable to type \'"order.paid" | "order.noted"\'. Did you mean \'"order.paid"\'?',
  ],
  [
    "a list with other data",
    'shop.emit([{ type: "order.noted", account, data: 1 }, { type: "order.paid", account, data: { order: 1, total: 1 } }]);',
    "Type 'number' is not assignable to type 'string'.",
  ],
  [
    "canRead of a type that there is not",
    'createWebhooks({ storage, events: shopEvents, access: { authenticate: () => null, canRead: (_, event) => event.type === "order.payd" } });',
    'This comparison appears to be unintentional because the types \'"order.paid" | "order.noted"\' and \'"order.payd"\' have no overlap.',
  ],
  [
    "a catalogue with a number",
    'createWebhooks({ storage, access: { authenticate: () => null, canRead: () => true }, events: { "invoice.paid": 5 } });',
    "Type 'number' is not assignable to type 'readonly never[] | TypeWithSchema<5>'.",
  ],
];

/** The code of hosts, in every way that has to compile. */
const CORRECT = `
export async function correct(ids: string[], any: any[], either: EventInput<ClinicalEventType> | readonly EventInput<ClinicalEventType>[]) {
  const one: Emitted = await webhooks.emit({ type: "patient.updated", account, resource: patient });
  const many: readonly Emitted[] = await webhooks.emit([
    { type: "patient.updated", account, resource: patient },
    { type: "consent.created", account, resource: { resourceType: "Consent", status: "active" }, related: [patient] },
  ]);
  const event = { type: "patient.updated", account, resource: patient } as const;
  const spread: readonly Emitted[] = await webhooks.emit([event, { ...event, related: [patient] }]);
  const input: EventInput<ClinicalEventType> = { type: "consent.updated", account, resource: { resourceType: "Consent" } };
  const typed: Emitted = await webhooks.emit(input);
  await webhooks.emit({ ...event, occurredAt: new Date(), id: undefined, related: undefined });
  await webhooks.emit({ ...event, occurredAt: "2026-01-01T00:00:00Z" }, { transaction: parsed });
  const list: EventInput<ClinicalEventType>[] = [input];
  const listed: readonly Emitted[] = await webhooks.emit(list);
  // The compiler knows only that it is some text.
  const wide = { resourceType: "Patient", id: "1" };
  const any1: FhirResource = wide;
  await webhooks.emit([{ ...event, resource: wide }, { ...event, resource: any1 }]);
  const mapped: readonly Emitted[] = await webhooks.emit(
    ids.map((id) => ({ type: "patient.updated", account, resource: { resourceType: "Patient", id } })),
  );
  const fromJson: Emitted = await webhooks.emit(parsed);
  const fromJsons: readonly Emitted[] = await webhooks.emit(any);
  const half: Emitted = await webhooks.emit({ type: parsed.type, account: parsed.account, resource: parsed.resource });
  const none: readonly Emitted[] = await webhooks.emit([]);
  await webhooks.emit(either);
  await own.emit([{ type: "person.merged", account, resource: patient }, { type: "invoice.paid", account, resource: { resourceType: "Invoice", total: 1 } }]);
  await both.emit([{ type: "invoice.paid", account, resource: { resourceType: "Invoice" } }, event]);
  const loaded: EventCatalogue = parsed ? clinicalEvents : { "invoice.paid": "Invoice" };
  const anyType: Webhooks = createWebhooks({ storage, access, events: loaded });
  await anyType.emit({ type, account, resource: encounter });
  const held: [Webhooks, Webhooks, Webhooks, Webhooks] = [webhooks, own, both, shop];
  const clinical: Webhooks<ClinicalEvents> = webhooks;
  await clinical.emit(event);
  const typed2: Webhooks<typeof shopEvents> = shop;
  // For any type of a catalogue, of plain events alone or of both kinds.
  function publish<T extends keyof typeof shopEvents>(name: T, value: EventData<typeof shopEvents, T>): Promise<Emitted> {
    return typed2.emit({ type: name, account, data: value, idempotencyKey: name }, { transaction: parsed });
  }
  await publish("order.paid", data);
  await publish("order.noted", [1]);
  const mixed = createWebhooks({ storage, access: parsed, events: mixedEvents });
  function note<T extends "order.paid" | "order.noted">(name: T, value: EventData<typeof mixedEvents, T>): Promise<readonly Emitted[]> {
    return mixed.emit([{ type: name, account, data: value }, { type: "invoice.paid", account, resource: { resourceType: "Invoice" } }]);
  }
  await note("order.paid", data);
  const same: Webhooks<ClinicalEvents> = createWebhooks({ storage, access, events: clinicalEvents });
  return [one, many, spread, typed, listed, mapped, fromJson, fromJsons, half, none, held, same];
}
`;

const JAVASCRIPT = `// @ts-check
import { clinicalEvents, createWebhooks } from "../../src/index.js";
/** @type {Parameters<typeof createWebhooks>[0]} */
const required = JSON.parse("{}");
const { storage, access } = required;
const webhooks = createWebhooks({ storage, access });
const both = createWebhooks({ storage, access, events: { ...clinicalEvents, "invoice.paid": "Invoice" } });
const account = "clinic-7";
const patient = { resourceType: "Patient", id: "1" };
`;

const JAVASCRIPT_CALLS: readonly (readonly [
  what: string,
  statement: string,
  firstLine: string | undefined,
])[] = [
  ["a call", 'webhooks.emit({ type: "patient.updated", account, resource: patient });', undefined],
  ["parsed JSON", "webhooks.emit(JSON.parse('{}'));", undefined],
  [
    "a list",
    'both.emit([{ type: "patient.updated", account, resource: patient }, { type: "invoice.paid", account, resource: { resourceType: "Invoice" } }]).then(([one]) => one?.webhooks.toFixed());',
    undefined,
  ],
  [
    "an unknown type",
    'webhooks.emit({ type: "patient.update", account, resource: patient });',
    "Type '\"patient.update\"' is not assignable to type 'keyof ClinicalEvents'. Did you mean '\"patient.updated\"'?",
  ],
  [
    "a resource of another type",
    'webhooks.emit({ type: "patient.updated", account, resource: { resourceType: "Encounter" } });',
    "Type '\"Encounter\"' is not assignable to type '\"Patient\"'.",
  ],
  [
    "a missing account",
    'webhooks.emit({ type: "patient.updated", resource: patient });',
    "Argument of type '{ type: \"patient.updated\"; resource: { resourceType: string; id: string; }; }' is not assignable to parameter of type 'EventInput<keyof ClinicalEvents>'.",
  ],
];

/** Compiles one file that lies in this folder and exists only here. */
function compile(name: string, text: string, options: ts.CompilerOptions) {
  const path = join(folder, name);
  const all: ts.CompilerOptions = {
    target: ts.ScriptTarget.ES2023,
    module: ts.ModuleKind.NodeNext,
    moduleResolution: ts.ModuleResolutionKind.NodeNext,
    allowJs: true,
    checkJs: true,
    types: ["node"],
    skipLibCheck: true,
    noEmit: true,
    ...options,
  };
  const host = ts.createCompilerHost(all);
  const disk = { ...host };
  host.fileExists = (file) => file === path || disk.fileExists(file);
  host.readFile = (file) => (file === path ? text : disk.readFile(file));
  host.getSourceFile = (file, ...rest) =>
    file === path ? ts.createSourceFile(file, text, rest[0]) : disk.getSourceFile(file, ...rest);
  const program = ts.createProgram([path], all, host);
  const source = program.getSourceFile(path);
  if (source === undefined) throw new Error(`${path} was not compiled`);
  const diagnostics = [...program.getSyntacticDiagnostics(source), ...program.getSemanticDiagnostics(source)];
  const errors = diagnostics.map(({ start = 0, messageText }) => {
    const whole = ts.flattenDiagnosticMessageText(messageText, "\n");
    return {
      line: source.getLineAndCharacterOfPosition(start).line,
      whole,
      first: whole.split("\n")[0] ?? "",
    };
  });
  return { program, source, errors };
}

/** Compiles statements, one on each line. Returns the errors of each. */
function compileStatements(
  name: string,
  prelude: string,
  statements: readonly string[],
  options: ts.CompilerOptions,
) {
  const { errors } = compile(name, prelude + statements.join("\n"), options);
  const from = prelude.split("\n").length - 1;
  expect(errors.filter(({ line }) => line < from)).toEqual([]);
  return statements.map((_, index) => errors.filter(({ line }) => line === from + index));
}

const CASES = [
  ...MISTAKES.map(([what, event, firstLine]) => [what, `webhooks.emit(${event});`, firstLine] as const),
  ...OWN_MISTAKES,
];

describe.each(Object.entries(MODES))("the compiler, %s", (mode, options) => {
  it("says in one short line what is wrong with an event", () => {
    const found = compileStatements(
      "mistakes.ts",
      PRELUDE,
      CASES.map(([, statement]) => statement),
      options,
    );
    // Without strict checks, `undefined` belongs to every type and is not printed.
    // It takes an event without a field for one that has it, so for a text it shows the hint.
    const expected = (line: string): string =>
      mode === "not strict"
        ? line
            .replace(" | undefined", "")
            .replace(/EventInput(<[^>]*> \| readonly )EventInput/, "EventHint$1EventHint")
        : line;
    const firstLines = found.map((errors, index) => [CASES[index]?.[0], errors.map(({ first }) => first)]);
    expect(firstLines).toEqual(CASES.map(([what, , line]) => [what, [expected(line)]]));
    for (const { first, whole } of found.flat()) {
      expect(first.length).toBeLessThanOrEqual(200);
      expect(whole).not.toMatch(/encounter-admission|more \.\.\.|Overload/);
    }
  });

  it("names the missing field", () => {
    const [errors] = compileStatements(
      "missing.ts",
      PRELUDE,
      ['webhooks.emit({ type: "patient.updated", resource: patient });'],
      options,
    );
    expect(errors?.[0]?.whole.split("\n")[1]).toMatch(/^ *Property 'account' is missing in type /);
  });

  it("accepts what hosts write, and knows the result", () => {
    expect(compile("correct.ts", PRELUDE + CORRECT, options).errors).toEqual([]);
  });

  it("checks JavaScript alike", () => {
    const statements = JAVASCRIPT_CALLS.map(([, statement]) => statement);
    const found = compileStatements("host.js", JAVASCRIPT, statements, options);
    expect(found.map((errors, index) => [JAVASCRIPT_CALLS[index]?.[0], errors[0]?.first])).toEqual(
      JAVASCRIPT_CALLS.map(([what, , line]) => [what, line]),
    );
  });
});

describe("an editor", () => {
  const text = `${PRELUDE}
export const single = webhooks.emit({ type: "patient.updated", account, resource: patient });
export const list = webhooks.emit([{ type: "patient.updated", account, resource: patient }]);
`;

  it("shows the names of the catalogue and of the result, not their contents", () => {
    const { program, source } = compile("shown.ts", text, { strict: true });
    const checker = program.getTypeChecker();
    const shown = new Map<string, string>();
    const visit = (node: ts.Node): void => {
      if (ts.isVariableDeclaration(node) && ts.isIdentifier(node.name))
        shown.set(node.name.text, checker.typeToString(checker.getTypeAtLocation(node)));
      ts.forEachChild(node, visit);
    };
    visit(source);
    expect(shown.get("webhooks")).toBe("Webhooks<ClinicalEvents>");
    expect(shown.get("single")).toBe("Promise<Emitted>");
    expect(shown.get("list")).toBe("Promise<readonly Emitted[]>");
  });
});
