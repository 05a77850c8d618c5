// Compares the facts of a step with the recorded ones.

const IGNORED_KEYS = [
  /^class_list$/,
  /^generated_slug$/,
  /^permalink_template$/,
  /^guid$/,
  /^link$/,
  /^jetpack_/,
  /^yoast_/,
];
/** Of one step and of one difference, what a person reads. */
const MOST_DIFFERENCES = 12;
const MOST_CHARACTERS = 160;

/**
 * Without what is never compared: keys that extensions add, and the codes in `data.details` of
 * validation errors.
 */
export function comparable(facts) {
  if (Array.isArray(facts)) return facts.map(comparable);
  if (typeof facts !== "object" || facts === null) return facts;
  const result = {};
  for (const [key, value] of Object.entries(facts)) {
    if (key === "details") continue;
    result[key] =
      key === "keys" && Array.isArray(value)
        ? value.filter((name) => !IGNORED_KEYS.some((pattern) => pattern.test(name)))
        : comparable(value);
  }
  return result;
}

const kindOf = (value) => (Array.isArray(value) ? "array" : value === null ? "null" : typeof value);

function show(value) {
  const text = JSON.stringify(value) ?? "<absent>";
  return text.length > MOST_CHARACTERS ? `${text.slice(0, MOST_CHARACTERS - 3)}...` : text;
}

/** One line for each place where `actual` is not what was `expected`. */
export function differences(expected, actual, path = "", found = []) {
  if (found.length > MOST_DIFFERENCES || expected === actual) return found;
  const kind = kindOf(expected);
  const unequal = () => found.push(`${path || "."}: expected ${show(expected)}, got ${show(actual)}`);
  if (kind !== kindOf(actual)) unequal();
  else if (kind === "array" && path.endsWith("keys")) {
    const missing = expected.filter((key) => !actual.includes(key));
    const unexpected = actual.filter((key) => !expected.includes(key));
    if (missing.length > 0) found.push(`${path}: missing ${missing.join(",")}`);
    if (unexpected.length > 0) found.push(`${path}: unexpected ${unexpected.join(",")}`);
  } else if (kind === "array") {
    const isListOfObjects = expected.every((item) => kindOf(item) === "object" || kindOf(item) === "array");
    if (expected.length === actual.length && isListOfObjects) {
      for (const [index, item] of expected.entries()) {
        differences(item, actual[index], `${path}[${index}]`, found);
      }
    } else if (JSON.stringify(expected) !== JSON.stringify(actual)) unequal();
  } else if (kind === "object") {
    for (const key of new Set([...Object.keys(expected), ...Object.keys(actual)])) {
      differences(expected[key], actual[key], path === "" ? key : `${path}.${key}`, found);
    }
  } else unequal();
  return found;
}
