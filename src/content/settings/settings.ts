/**
 * The settings of the site: values of the host, overridden by those that administrators wrote; and
 * the routes that read and write them.
 */

import { type Clock, withTimeout } from "../../core/clock.js";
import type { Logger } from "../../core/logger.js";
import type { Arguments, Json, JsonObject, Schema } from "../../schema/types.js";
import { readValue } from "../../schema/validate.js";
import type { User } from "../records/records.js";
import type { ContentRepository } from "../repository/content-repository.js";
import { readSiteOption } from "../repository/small-records.js";
import { RestError, refusal } from "../rest/error.js";
import type { RestRequest, RestResponse, RestRoute } from "../rest/types.js";
import type { SiteOptions } from "../site.js";
import {
  SETTING_NAMES,
  type SettingChanges,
  type SettingField,
  type SettingName,
  type SettingsOptions,
  type SettingValues,
  settingFields,
  type WritableSetting,
  type WriteSettings,
} from "./setting-fields.js";

export interface Settings {
  /** Returns the current values. They are frozen, and cached until something changes. */
  read: () => SettingValues;
  /** Returns the values without those that were written. */
  readInitial: () => SettingValues;
  isWritable: (name: SettingName) => boolean;
  /**
   * Asks the host and stores what it accepts. A setting whose value is the initial one follows the
   * host's options again.
   *
   * @throws RestError 503 `rest_settings_unavailable` if the host's hook fails
   */
  write: (changes: SettingChanges, user: User) => Promise<void>;
}

const TIMEOUT_MS = 5_000;

const INITIAL = Object.fromEntries(
  Object.entries(settingFields).map(([name, { initial }]) => [name, initial]),
) as unknown as SettingValues;

/** WordPress has names of cities here; an offset is another setting, which REST does not show. */
const toZoneName = (timezone = "UTC"): string => (timezone.includes("/") ? timezone : "");

const unavailable = (): RestError =>
  new RestError(503, "rest_settings_unavailable", "Settings cannot be saved at the moment; try again later.");

export function createSettings({
  site,
  options: { values, writable, write: hook },
  repository,
  clock,
  logger,
}: {
  site: SiteOptions;
  options: {
    values: NonNullable<SettingsOptions["values"]>;
    writable: WritableSetting[];
    write?: WriteSettings | undefined;
  };
  repository: ContentRepository;
  clock: Clock;
  logger: Logger;
}): Settings {
  const { index, stamp } = repository;
  const names: Set<SettingName> = new Set(writable);
  let cached: { stamp: number; values: SettingValues } | undefined;

  const readInitial = (): SettingValues => ({
    ...INITIAL,
    ...values,
    title: site.name,
    description: site.description ?? "",
    url: site.url,
    timezone: toZoneName(site.timezone),
    default_category: repository.defaultCategory() ?? 0,
  });

  /** Returns those values of the host's answer that may be stored, in the types of the settings. */
  function readAnswer(answer: unknown): SettingChanges {
    if (typeof answer !== "object" || answer === null) return {};
    const entries = Object.entries(answer).filter(([name]) => names.has(name as SettingName));
    const accepted = (entries as [WritableSetting, Json][]).map(([name, value]) => {
      if (value === INITIAL[name]) return [name, value];
      const read = readValue(value, settingFields[name].schema, name);
      if (read.problem === undefined) return [name, read.value];
      throw new Error(`settings.write returned an invalid value: ${read.problem.message}`);
    });
    return Object.fromEntries(accepted) as SettingChanges;
  }

  async function askHost(changes: SettingChanges, user: User): Promise<SettingChanges> {
    if (hook === undefined) return changes;
    const late = (): Error => new Error(`settings.write took more than ${TIMEOUT_MS} ms`);
    try {
      const answer = Promise.resolve(hook(Object.freeze({ ...changes }), { user }));
      return { ...changes, ...readAnswer(await withTimeout(clock, TIMEOUT_MS, answer, late)) };
    } catch (error) {
      logger.error({ error }, "the hook settings.write has failed");
      throw unavailable();
    }
  }

  return {
    readInitial,
    read() {
      const current = stamp();
      if (cached?.stamp !== current) {
        const written = readSiteOption(index, "settings") as Partial<SettingValues>;
        cached = { stamp: current, values: Object.freeze({ ...readInitial(), ...written }) };
      }
      return cached.values;
    },
    isWritable: (name) => names.has(name),
    async write(changes, user) {
      const accepted = await askHost(changes, user);
      await repository.change((transaction) => {
        const initial = readInitial();
        const all = { ...readSiteOption(index, "settings"), ...accepted };
        const written = Object.entries(all).filter(([name, value]) => value !== initial[name as SettingName]);
        transaction.putOption("settings", Object.fromEntries(written));
      });
    },
  };
}

// `/settings`: administrators read the settings of the site, and write those the host allows.

const CAPABILITY = "manage_options";

const fieldOf = (name: SettingName): SettingField<Json> => settingFields[name] as SettingField<Json>;

const mapSettings = <T>(map: (name: SettingName) => T): { [name: string]: T } =>
  Object.fromEntries(SETTING_NAMES.map((name) => [name, map(name)]));

const schema: Schema = {
  title: "settings",
  type: "object",
  properties: mapSettings((name) => fieldOf(name).schema),
};

/** `null` resets a setting; every argument accepts it. */
const writableArguments: Arguments = mapSettings((name) => {
  const { default: _, ...argument } = fieldOf(name).schema;
  return argument as Arguments[string];
});

const responseSchema: Schema = {
  type: "object",
  required: SETTING_NAMES,
  properties: mapSettings((name): Schema => {
    const { description = "", type = [], enum: choices } = fieldOf(name).schema;
    const types = fieldOf(name).initial === null ? [type, "null" as const].flat() : type;
    return { description, type: types, ...(choices === undefined ? {} : { enum: choices }) };
  }),
  additionalProperties: false,
};

export function settingsRoutes({
  settings,
  namespace,
}: {
  settings: Settings;
  namespace: string;
}): RestRoute[] {
  const respond = (): RestResponse => ({
    status: 200,
    headers: {},
    body: { json: { ...settings.read() } as JsonObject },
  });

  const described = { form: "json", schema: responseSchema, errors: [403] } as const;
  return [
    {
      namespace,
      path: "/settings",
      schema,
      endpoints: [
        {
          methods: ["GET"],
          args: {},
          described: { summary: "Read the settings of the site", ...described },
          permit: permitAdministrator,
          handle: respond,
        },
        {
          methods: ["POST", "PUT", "PATCH"],
          args: writableArguments,
          described: { summary: "Change settings of the site", ...described },
          permit(request) {
            permitAdministrator(request);
            const fixed = SETTING_NAMES.filter((name) => !settings.isWritable(name));
            const [refused] = Object.keys(listChanges(request, settings, fixed)) as SettingName[];
            if (refused !== undefined) throw cannotUpdate(request, refused);
          },
          async handle(request) {
            const changes = listChanges(request, settings) as SettingChanges;
            const { user } = request.caller;
            if (user !== null && Object.keys(changes).length > 0) await settings.write(changes, user);
            return respond();
          },
        },
      ],
    },
  ];
}

function permitAdministrator({ caller }: RestRequest): void {
  if (caller.has(CAPABILITY)) return;
  throw refusal(caller, "rest_forbidden", "Sorry, you are not allowed to do that.");
}

const cannotUpdate = ({ caller }: RestRequest, name: SettingName): RestError =>
  new RestError(
    caller.id === 0 ? 401 : 403,
    "rest_cannot_update",
    `Sorry, you are not allowed to edit the ${name} option.`,
    { data: { key: name } },
  );

/** Returns the values of `names`, cleaned, of the settings that they would change. */
function listChanges(
  { values, isGiven, input }: RestRequest,
  settings: Settings,
  names: SettingName[] = SETTING_NAMES,
): { [name: string]: Json } {
  const current = settings.read();
  const initial = settings.readInitial();
  return Object.fromEntries(
    names.flatMap((name) => {
      if (!isGiven(name)) return [];
      const { clean = (value: Json) => value } = fieldOf(name);
      const value = input[name] === null ? initial[name] : clean(values[name] as Json);
      // A client may send back what it has read.
      const isSame = value === current[name] || values[name] === current[name];
      return isSame ? [] : [[name, value]];
    }),
  );
}
