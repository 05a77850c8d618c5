/**
 * Regular expressions of hosts, matched in time that is linear in the text: a simulation of
 * Thompson's automaton, which follows all alternatives at once and never goes back.
 *
 * Node's engine checks the syntax, and decides about single characters: classes, escapes and
 * `\p{…}` mean what they mean in ECMAScript with the flag `u`.
 */

import { randomInt } from "node:crypto";
import type { Budget } from "./budget.js";

/** Thrown for a pattern that is no regular expression, or cannot be matched in linear time. */
export class PatternError extends Error {
  override name = "PatternError";
}

const MAX_LENGTH = 4_096;
const MAX_GROUP_LEVELS = 100;
/** States of the automaton. `[a-z]{1,64}` has about 130. */
const MAX_STATES = 2_000;

/** Characters whose membership in a class is remembered. */
const REMEMBERED = 256;
/** States and steps of a pattern that are remembered from one text to the next. */
const MAX_REMEMBERED = 10_000;
/** Steps for a question to Node's engine, and for each text. */
const ASK_STEPS = 6;
const TEXT_STEPS = 4;

type Assertion = "^" | "$" | "\\b" | "\\B";

type Expression =
  | { kind: "character"; atom: string }
  | { kind: "assertion"; assertion: Assertion }
  | { kind: "sequence" | "choice"; parts: Expression[] }
  | { kind: "repeat"; part: Expression; min: number; max: number };

const CLASS = /\[(?:\\.|[^\]\\])*\]/suy;
const ESCAPE =
  /\\(?:[pP]\{[^}]*\}|u\{[^}]*\}|u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}|u[\da-fA-F]{4}|x[\da-fA-F]{2}|c[a-zA-Z]|.)/suy;
const QUANTIFIER = /(?:([*+?])|\{(\d+)(?:(,)(\d*))?\})\??/uy;
const GROUP = /\((?:\?:|\?<(?![=!])[^>]*>|(?!\?))/uy;

/** Reads a pattern that Node accepts with the flag `u`. */
class PatternReader {
  #at = 0;
  #level = 0;
  #source: string;

  constructor(source: string) {
    this.#source = source;
  }

  readChoice(): Expression {
    const parts = [this.#readSequence()];
    while (this.#source[this.#at] === "|") {
      this.#at += 1;
      parts.push(this.#readSequence());
    }
    return parts.length === 1 && parts[0] !== undefined ? parts[0] : { kind: "choice", parts };
  }

  #readSequence(): Expression {
    const parts: Expression[] = [];
    while (this.#at < this.#source.length && !"|)".includes(this.#source.charAt(this.#at)))
      parts.push(this.#readQuantified(this.#readTerm()));
    return { kind: "sequence", parts };
  }

  #readTerm(): Expression {
    const next = this.#source.charAt(this.#at);
    if (next === "(") return this.#readGroup();
    if (next === "^" || next === "$") {
      this.#at += 1;
      return { kind: "assertion", assertion: next };
    }
    if (next === "[") return { kind: "character", atom: this.#take(CLASS) };
    if (next !== "\\") {
      const atom = String.fromCodePoint(this.#source.codePointAt(this.#at) ?? 0);
      this.#at += atom.length;
      return { kind: "character", atom: atom === "/" ? "\\/" : atom };
    }
    const atom = this.#take(ESCAPE);
    if (atom === "\\b" || atom === "\\B") return { kind: "assertion", assertion: atom };
    if (/^\\[1-9k]/.test(atom)) throw new PatternError("has a reference to a group, which is not supported");
    return { kind: "character", atom };
  }

  #readGroup(): Expression {
    if (this.#take(GROUP) === "")
      throw new PatternError(
        "has a lookaround or a modifier, which is not supported; several patterns can stand in 'allOf'",
      );
    this.#level += 1;
    if (this.#level > MAX_GROUP_LEVELS) throw new PatternError(`has more than ${MAX_GROUP_LEVELS} levels`);
    const inner = this.readChoice();
    this.#level -= 1;
    this.#at += 1;
    return inner;
  }

  #readQuantified(part: Expression): Expression {
    QUANTIFIER.lastIndex = this.#at;
    const match = QUANTIFIER.exec(this.#source);
    if (match === null) return part;
    this.#at += match[0].length;
    const [, sign, from, comma, to] = match;
    if (sign !== undefined) {
      const limit = sign === "?" ? 1 : Number.POSITIVE_INFINITY;
      return { kind: "repeat", part, min: sign === "+" ? 1 : 0, max: limit };
    }
    const min = Number(from);
    const max = comma === undefined ? min : to === "" ? Number.POSITIVE_INFINITY : Number(to);
    return { kind: "repeat", part, min, max };
  }

  #take(token: RegExp): string {
    token.lastIndex = this.#at;
    const [text = ""] = token.exec(this.#source) ?? [];
    this.#at += text.length;
    return text;
  }
}

/** Decides whether one character belongs to an atom such as `[a-z]` or `\p{L}`. */
class CharacterTest {
  #expression: RegExp;
  /** 0: not asked yet, 1: no, 2: yes. */
  #remembered = new Uint8Array(REMEMBERED);

  constructor(atom: string) {
    this.#expression = new RegExp(`^${atom}$`, "u");
  }

  accepts(code: number, budget: Budget): boolean {
    const found = this.#remembered[code] ?? 0;
    if (found !== 0) return found === 2;
    budget.spend(ASK_STEPS);
    const accepted = this.#expression.test(String.fromCodePoint(code));
    if (code < REMEMBERED) this.#remembered[code] = accepted ? 2 : 1;
    return accepted;
  }
}

interface State {
  /** For a state that takes a character. */
  test?: CharacterTest;
  /** For a state that takes none: it is passed if this holds. */
  assertion?: Assertion;
  /** The states that follow. The accepting state has none. */
  next: number[];
}

const isWord = (code: number): boolean =>
  (code >= 48 && code <= 57) || (code >= 65 && code <= 90) || code === 95 || (code >= 97 && code <= 122);

/** No character: before the first and after the last. */
const NONE = -1;

function holds(assertion: Assertion, before: number, after: number): boolean {
  if (assertion === "^") return before === NONE;
  if (assertion === "$") return after === NONE;
  return (isWord(before) !== isWord(after)) === (assertion === "\\b");
}

/** True if a match can only begin where the text does. */
function isAnchored(expression: Expression): boolean {
  if (expression.kind === "assertion") return expression.assertion === "^";
  if (expression.kind === "choice") return expression.parts.every(isAnchored);
  const [first] = expression.kind === "sequence" ? expression.parts : [];
  return first !== undefined && isAnchored(first);
}

/** The states that the text so far leads to, and the positions that follow. */
interface Position {
  reached: number[];
  /** The next position, or the result if it is certain. By {@link toKey}. */
  after: Map<number, Position | boolean>;
}

/** Node hashes numbers without a secret: chosen characters could all fall in one bucket. */
const SECRET = randomInt(2 ** 31);
const ODD_SECRET = randomInt(2 ** 31) | 1;

/** Of all that decides about the next step: the character, and the kind of the one before. */
function toKey(before: number, code: number): number {
  const kind = before === NONE ? 0 : isWord(before) ? 1 : 2;
  const step = kind * 0x11_0001 + (code === NONE ? 0x11_0000 : code);
  return Math.imul(step ^ SECRET, ODD_SECRET);
}

/** A regular expression of ECMAScript with the flag `u`, without lookaround and back references. */
export class Pattern {
  #states: State[] = [];
  #tests = new Map<string, CharacterTest>();
  #start: number;
  #isAnchored: boolean;
  #emitted = 0;
  /** Positions by the states that are reached, so that a text that repeats itself costs little. */
  #positions = new Map<string, Position>();
  #remembered = 0;
  #first: Position | undefined;

  /** @throws {PatternError} */
  constructor(source: string) {
    if (source.length > MAX_LENGTH) throw new PatternError(`is longer than ${MAX_LENGTH} characters`);
    try {
      new RegExp(source, "u");
    } catch (cause) {
      throw new PatternError("is not a regular expression of ECMAScript with the flag u", { cause });
    }
    const expression = new PatternReader(source).readChoice();
    this.#isAnchored = isAnchored(expression);
    const accepting = this.#add({ next: [] });
    this.#start = this.#emit(expression, accepting);
  }

  #add(state: State): number {
    if (this.#states.length >= MAX_STATES)
      throw new PatternError(
        `is too large: with all repetitions written out, it has at most ${MAX_STATES} states`,
      );
    return this.#states.push(state) - 1;
  }

  /** Adds the states of an expression that is followed by `next`. Returns the first of them. */
  #emit(expression: Expression, next: number): number {
    // Also bounds expressions without states: `(){1000000}`.
    this.#emitted += 1;
    if (this.#emitted > 4 * MAX_STATES) throw new PatternError("is too large");
    switch (expression.kind) {
      case "character": {
        const { atom } = expression;
        const test = this.#tests.get(atom) ?? new CharacterTest(atom);
        this.#tests.set(atom, test);
        return this.#add({ test, next: [next] });
      }
      case "assertion":
        return this.#add({ assertion: expression.assertion, next: [next] });
      case "sequence":
        return expression.parts.reduceRight((after, part) => this.#emit(part, after), next);
      case "choice":
        return this.#add({ next: expression.parts.map((part) => this.#emit(part, next)) });
      case "repeat":
        return this.#emitRepeat(expression, next);
    }
  }

  #emitRepeat({ part, min, max }: Extract<Expression, { kind: "repeat" }>, next: number): number {
    let first = next;
    if (max === Number.POSITIVE_INFINITY) {
      const loop: State = { next: [next] };
      first = this.#add(loop);
      loop.next.push(this.#emit(part, first));
    } else {
      for (let count = min; count < max; count += 1)
        first = this.#add({ next: [next, this.#emit(part, first)] });
    }
    for (let count = 0; count < min; count += 1) first = this.#emit(part, first);
    return first;
  }

  /**
   * True if the pattern matches somewhere in the text. A character costs one step where the same
   * states met it before, else a few for each state.
   * @throws {TooComplexError}
   */
  matches(text: string, budget: Budget): boolean {
    budget.spend(TEXT_STEPS);
    this.#first ??= this.#toPosition([this.#start]);
    let position = this.#first;
    let before = NONE;
    let at = 0;
    for (;;) {
      const code = text.codePointAt(at) ?? NONE;
      const key = toKey(before, code);
      budget.spend(1);
      let next = position.after.get(key);
      if (next === undefined) {
        next = this.#advance(position, [before, code], budget);
        position.after.set(key, next);
        this.#remembered += 1;
      }
      if (typeof next === "boolean") return next;
      position = next;
      before = code;
      at += code > 0xffff ? 2 : 1;
    }
  }

  #advance(
    { reached }: Position,
    [before, code]: [before: number, code: number],
    budget: Budget,
  ): Position | boolean {
    const taking = this.#follow(reached, [before, code], budget);
    if (taking === undefined) return true;
    if (code === NONE) return false;
    const next = new Set<number>();
    for (const index of taking) {
      const state = this.#states[index];
      if (state?.test?.accepts(code, budget) === true) for (const one of state.next) next.add(one);
    }
    if (!this.#isAnchored) next.add(this.#start);
    budget.spend(taking.length + 4 * next.size);
    return next.size === 0 ? false : this.#toPosition([...next].sort((one, other) => one - other));
  }

  #toPosition(reached: number[]): Position {
    if (this.#remembered > MAX_REMEMBERED) {
      this.#positions.clear();
      this.#first = undefined;
      this.#remembered = 0;
    }
    const key = reached.join();
    const found = this.#positions.get(key);
    if (found !== undefined) return found;
    const position: Position = { reached, after: new Map() };
    this.#positions.set(key, position);
    this.#remembered += reached.length;
    return position;
  }

  /**
   * Returns the states that take a character and follow from these without one; `undefined` if the
   * accepting state does.
   */
  #follow(
    reached: number[],
    [before, after]: [before: number, after: number],
    budget: Budget,
  ): number[] | undefined {
    const added = new Set<number>();
    const pending = [...reached];
    const taking: number[] = [];
    let steps = 0;
    for (let index = pending.pop(); index !== undefined; index = pending.pop()) {
      steps += 1;
      if (added.has(index)) continue;
      added.add(index);
      const state = this.#states[index];
      if (state === undefined || state.next.length === 0) return undefined;
      if (state.test !== undefined) taking.push(index);
      else if (state.assertion === undefined || holds(state.assertion, before, after))
        pending.push(...state.next);
    }
    budget.spend(2 * steps);
    return taking;
  }
}
