/** Event types: choosing those of a webhook, naming them, and finding who gets one. */

import { texts } from "../texts.js";

/** The types of one record: `patient` has `patient.created`, `patient.updated` … */
export interface EventTypeGroup {
  /** `patient` */
  name: string;
  /** `Patient`, as a heading. */
  title: string;
  /** In the order of the catalogue. */
  types: string[];
}

const groupOf = (type: string): string => {
  const dot = type.indexOf(".");
  return dot === -1 ? type : type.slice(0, dot);
};

/** `allergy_intolerance`, `allergyIntolerance` → `Allergy intolerance` */
function toTitle(name: string): string {
  const words = name
    .replace(/([a-z])([A-Z])/g, "$1 $2")
    .replace(/[_-]/g, " ")
    .toLowerCase();
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** Groups the types of the catalogue by their record, sorted by title. */
export function groupEventTypes(catalogue: string[]): EventTypeGroup[] {
  const groups = new Map<string, string[]>();
  for (const type of catalogue) {
    const types = groups.get(groupOf(type));
    if (types) types.push(type);
    else groups.set(groupOf(type), [type]);
  }
  return [...groups]
    .map(([name, types]) => ({ name, title: toTitle(name), types }))
    .sort((a, b) => a.title.localeCompare(b.title));
}

/** The pattern of all types of a group, also future ones. */
export const wildcardOf = ({ name }: EventTypeGroup): string => `${name}.*`;

/** `created`, the part of a type that its group does not say already. */
export const actionOf = ({ name }: EventTypeGroup, type: string): string =>
  type.startsWith(`${name}.`) ? type.slice(name.length + 1) : type;

/** Leaves the groups and types that contain what the visitor searches for. */
export function searchEventTypes(groups: EventTypeGroup[], text: string): EventTypeGroup[] {
  const wanted = text.trim().toLowerCase();
  if (wanted === "") return groups;
  return groups.flatMap((group) => {
    if (group.title.toLowerCase().includes(wanted)) return [group];
    const types = group.types.filter((type) => type.toLowerCase().includes(wanted));
    return types.length === 0 ? [] : [{ ...group, types }];
  });
}

/**
 * Sorts the types of a catalogue: those of the host first, then the clinical ones, which describe
 * records. The rest of the order stays.
 */
export const sortByOwner = <T extends { resourceTypes: readonly string[] | null }>(details: T[]): T[] =>
  details.toSorted((a, b) => Number(a.resourceTypes !== null) - Number(b.resourceTypes !== null));

const covers = (pattern: string, type: string): boolean =>
  pattern === "*" || pattern === type || (pattern.endsWith(".*") && type.startsWith(pattern.slice(0, -1)));

/** Returns the webhooks that subscribe to a type. */
export const findReceivers = <T extends { event_types: readonly string[] }>(
  webhooks: T[],
  type: string,
): T[] => webhooks.filter(({ event_types }) => event_types.some((pattern) => covers(pattern, type)));

/** Counts the types of the catalogue that the chosen patterns cover. */
export const countCovered = (catalogue: string[], chosen: Set<string>): number =>
  catalogue.filter((type) => [...chosen].some((pattern) => covers(pattern, type))).length;

/** Returns chosen patterns that no group offers, such as those with a longer prefix. */
export function findOtherPatterns(groups: EventTypeGroup[], chosen: Set<string>): string[] {
  const offered = new Set(groups.flatMap((group) => [wildcardOf(group), ...group.types]));
  return [...chosen].filter((pattern) => !offered.has(pattern) && pattern !== "*");
}

/**
 * Adds or removes a pattern. A wildcard takes the place of the types that it covers; without it, no
 * type of them is chosen.
 */
export function togglePattern(chosen: Set<string>, pattern: string): Set<string> {
  if (chosen.has(pattern)) return new Set([...chosen].filter((other) => other !== pattern));
  return new Set([...chosen].filter((other) => !covers(pattern, other))).add(pattern);
}

const SHOWN = 4;

/** `All event types`, or the first few names. */
export function describeEventTypes(types: readonly string[] | null): string {
  if (types === null || types.includes("*")) return texts.eventTypes.allShort;
  const rest = types.length - SHOWN;
  const shown = types.slice(0, SHOWN).join(", ");
  return rest > 0 ? texts.eventTypes.andMore({ types: shown, count: rest }) : shown;
}
