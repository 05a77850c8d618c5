/** `/settings`: administrators read the settings of the site, and write those the host allows. */

import type { Arguments, Json, JsonObject, Schema } from "../../schema/types.js";
import { RestError, refusal } from "../rest/error.js";
import type { RestRequest, RestResponse, RestRoute } from "../rest/types.js";
import { SETTING_NAMES, type SettingField, type SettingName, settingFields } from "./setting-fields.js";
import type { SettingChanges } from "./setting-options.js";
import type { Settings } from "./settings.js";

const CAPABILITY = "manage_options";

const fieldOf = (name: SettingName): SettingField<Json> => settingFields[name] as SettingField<Json>;

const mapSettings = <T>(map: (name: SettingName) => T): { readonly [name: string]: T } =>
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
  readonly settings: Settings;
  readonly namespace: string;
}): readonly RestRoute[] {
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
            const { caller, isGiven, given } = request;
            const isSet = (name: SettingName): boolean => isGiven(name) && given[name] !== null;
            const refused = caller.has(CAPABILITY)
              ? (Object.keys(listChanges(request, settings)) as SettingName[]).find(
                  (name) => !settings.isWritable(name),
                )
              : SETTING_NAMES.find(isSet);
            if (refused !== undefined) throw cannotUpdate(request, refused);
            permitAdministrator(request);
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

/** Returns the given values, cleaned, of the settings that they would change. */
function listChanges(
  { values, isGiven, given }: RestRequest,
  settings: Settings,
): { readonly [name: string]: Json } {
  const current = settings.read();
  const initial = settings.readInitial();
  return Object.fromEntries(
    SETTING_NAMES.flatMap((name) => {
      if (!isGiven(name)) return [];
      const { clean = (value: Json) => value } = fieldOf(name);
      const value = given[name] === null ? initial[name] : clean(values[name] as Json);
      // A client may send back what it has read.
      const isSame = value === current[name] || values[name] === current[name];
      return isSame ? [] : [[name, value]];
    }),
  );
}
