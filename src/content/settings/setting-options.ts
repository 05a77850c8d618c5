/** The option `settings` of `createContent`, as a host writes it, and its check. */

import { PostbellError } from "../../core/errors.js";
import type { Json } from "../../schema/types.js";
import { validateValue } from "../../schema/validate.js";
import type { User } from "../records/records.js";
import type { WritableSetting } from "./setting-fields.js";
import { type HostSetting, isWritableSetting, type SettingValues, settingFields } from "./setting-fields.js";

/** Values of settings that a client writes. They are valid and cleaned. */
export type SettingChanges = Partial<Pick<SettingValues, WritableSetting>>;

/**
 * Called with the settings that an administrator changes, before they are stored. If it returns an
 * object, or a promise of one, the settings in it that may be written are stored as well, in place
 * of the changes with the same name. Any other result is ignored.
 *
 * If it throws, takes longer than 5 seconds or returns an invalid value, nothing is stored: the
 * error is logged, and the response is 503. It may be called again for a change that it has seen.
 */
export type WriteSettings = (changes: SettingChanges, details: { readonly user: User }) => unknown;

/**
 * The route `/settings`, for administrators.
 *
 * @example
 * ```ts
 * settings: {
 *   values: { email: "site@example.org", language: "de_DE", posts_per_page: 20 },
 *   writable: ["title", "description"],
 *   write: (changes, { user }) => audit.record(user.id, changes),
 * }
 * ```
 */
export interface SettingsOptions {
  /**
   * Values of settings that do not follow from `site`. Default: those of a new WordPress site. A
   * value that an administrator wrote takes precedence.
   */
  readonly values?: Partial<Pick<SettingValues, HostSetting>> | undefined;
  /**
   * Names of the settings that administrators may write. Default: none, and each change is refused
   * with 403. Written settings are kept in the storage, and every process shows them.
   */
  readonly writable?: readonly WritableSetting[] | undefined;
  /** Called before written settings are stored. */
  readonly write?: WriteSettings | undefined;
}

const refuse = (field: string, message: string): never => {
  throw new PostbellError("invalid_option", `createContent: ${field} ${message}`, { field });
};

/** @throws PostbellError `invalid_option` for an unknown name or a value that does not fit */
export function checkSettingOptions({
  values,
  writable,
}: {
  readonly values: object;
  readonly writable: readonly unknown[];
}): void {
  for (const [name, value] of Object.entries(values) as [string, Json][]) {
    const field = `settings.values.${name}`;
    if (!isWritableSetting(name)) refuse(field, "is not a setting that the host gives a value.");
    else if (name === "title" || name === "description")
      refuse(field, `is not an option; set site.${name === "title" ? "name" : name} instead.`);
    else if (value !== settingFields[name].initial) {
      const problem = validateValue(value, settingFields[name].schema, field);
      if (problem !== undefined) refuse(field, `is not valid: ${problem.message}`);
    }
  }
  const unknown = writable.find((name) => !isWritableSetting(name));
  if (unknown !== undefined) refuse("settings.writable", `must list settings that clients may write.`);
}
