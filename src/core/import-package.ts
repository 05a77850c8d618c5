/** Imports the packages that a host installs for itself: drivers, sharp, nodemailer. */

import { PostbellError } from "./errors.js";

/**
 * Returns a function or class that an optional package exports. `load` calls `import` with
 * the name of the package written out, so that bundlers see it.
 *
 * Node, webpack and esbuild wrap a CommonJS package differently: its exports are names of the
 * module, or of its `default`, or of the `default` of that. A package that is a function may be the
 * module itself. All of these are read.
 *
 * @throws `invalid_option` if the package is not installed, or does not export the name
 */
export async function importFromPackage<T>(
  load: () => Promise<unknown>,
  exported: string,
  missing: { message: string; field: string },
): Promise<T> {
  let module: unknown;
  try {
    module = await load();
  } catch (cause) {
    throw new PostbellError("invalid_option", missing.message, { field: missing.field, cause });
  }
  const wrapped = [module, readExport(module, "default")];
  wrapped.push(readExport(wrapped[1], "default"));
  const found = [...wrapped.map((value) => readExport(value, exported)), ...wrapped].find(
    (value) => typeof value === "function",
  );
  if (found === undefined) {
    const names = wrapped.flatMap((value) => (value ? Object.keys(value) : []));
    throw new PostbellError(
      "invalid_option",
      `${missing.message} A package was found, but it does not export ${exported} (it exports ${[...new Set(names)].join(", ") || "nothing"}). If a bundler builds your program, keep this package out of the bundle.`,
      { field: missing.field },
    );
  }
  return found as T;
}

const readExport = (value: unknown, name: string): unknown =>
  (typeof value === "object" && value !== null) || typeof value === "function"
    ? (value as Record<string, unknown>)[name]
    : undefined;
