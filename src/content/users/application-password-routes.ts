/** The REST routes of application passwords: those of the caller, and of users he may edit. */

import { toText } from "../../schema/coerce.js";
import type { Argument, Arguments, Context, Json, Schema } from "../../schema/types.js";
import { validateValue } from "../../schema/validate.js";
import type { ApplicationPasswords } from "../callers.js";
import type { ApplicationPassword } from "../repository/small-records.js";
import { RestError, refusal } from "../rest/error.js";
import {
  ALL,
  contextArgument,
  EDIT,
  FULL,
  type RecordFields,
  readContext,
  recordSchema,
  selectRecordFields,
} from "../rest/record-fields.js";
import { createItem } from "../rest/serialise.js";
import type { Item, RestEndpoint, RestRequest, RestResponse, RestRoute } from "../rest/types.js";
import { formatDate } from "../text/dates.js";
import { stripAll } from "../text/markup.js";
import type { Users } from "./users.js";

/** A password as responses show it; with the password itself only when it was created. */
interface ShownPassword extends ApplicationPassword {
  password?: string;
}

const MAX_NAME = 255;
const UUID_LENGTH = 36;

const toGroups = (password: string): string => password.match(/.{1,4}/g)?.join(" ") ?? "";

const toDate = (ms: number | null): string | null => (ms === null ? null : formatDate(ms));

const APP_ID: Argument = {
  description:
    "A UUID provided by the application to uniquely identify it. It is recommended to use an UUID v5 with the URL or DNS namespace.",
  type: "string",
  format: "uuid",
  maxLength: UUID_LENGTH,
};
const NAME: Argument = {
  description: "The name of the application password.",
  type: "string",
  minLength: 1,
  maxLength: MAX_NAME,
};

const fields: RecordFields<ShownPassword> = {
  uuid: {
    schema: {
      description: "The unique identifier for the application password.",
      type: "string",
      format: "uuid",
      context: ALL,
      readonly: true,
    },
    read: ({ uuid }) => uuid,
  },
  app_id: {
    schema: { ...APP_ID, context: ALL, answered: { type: "string", maxLength: UUID_LENGTH } },
    read: ({ appId }) => appId,
  },
  name: { schema: { ...NAME, context: ALL }, read: ({ name }) => name },
  password: {
    schema: {
      description: "The generated password. Only available after adding an application.",
      type: "string",
      context: EDIT,
      readonly: true,
      sometimes: true,
    },
    read: ({ password = "" }) => toGroups(password),
  },
  created: {
    schema: {
      description: "The GMT date the application password was created.",
      type: "string",
      format: "date-time",
      context: FULL,
      readonly: true,
    },
    read: ({ createdAt }) => formatDate(createdAt),
  },
  last_used: {
    schema: {
      description: "The GMT date the application password was last used.",
      type: ["string", "null"],
      format: "date-time",
      context: FULL,
      readonly: true,
    },
    read: ({ lastUsedAt }) => toDate(lastUsedAt),
  },
  last_ip: {
    schema: {
      description: "The IP address the application password was last used by.",
      type: ["string", "null"],
      format: "ip",
      context: FULL,
      readonly: true,
    },
    read: ({ lastIp }) => lastIp,
  },
};

const { password: _, ...fieldsLater } = fields;

const schema = recordSchema("application-password", fields);

const deletedAll: Schema = {
  type: "object",
  required: ["deleted", "count"],
  properties: { deleted: { type: "boolean" }, count: { type: "integer" } },
  additionalProperties: false,
};

/** As in WordPress, an empty text is no id. */
const appIdArgument: Argument = {
  ...APP_ID,
  accepted: {
    anyOf: [
      { type: "string", format: "uuid" },
      { type: "string", enum: [""] },
    ],
  },
  validate: (value) => (value === "" ? undefined : validateValue(value, APP_ID, "app_id")),
};

const USER_ID: Argument = { description: "Unique identifier for the user.", type: "integer" };
const UUID: Argument = {
  description: "The unique identifier for the application password.",
  type: "string",
  maxLength: UUID_LENGTH,
};

/** The code and the words of a refusal, by action. */
const REFUSALS = {
  list: ["rest_cannot_list_application_passwords", "list application passwords for this user"],
  create: ["rest_cannot_create_application_passwords", "create application passwords for this user"],
  read: ["rest_cannot_read_application_password", "read this application password"],
  edit: ["rest_cannot_edit_application_password", "edit this application password"],
  delete: ["rest_cannot_delete_application_password", "delete this application password"],
  deleteAll: ["rest_cannot_delete_application_passwords", "delete application passwords for this user"],
} as const;

/** Reads the name, without tags and control characters. */
function readName({ values }: RestRequest): string {
  const name = stripAll(toText(values["name"]));
  if (name !== "") return name;
  throw new RestError(
    400,
    "application_password_empty_name",
    "An application name is required to create an application password.",
  );
}

/** Returns the member `authentication` of the index; as in WordPress, nothing is an empty list. */
export function describeAuthentication(passwords: ApplicationPasswords | undefined): Json {
  if (passwords === undefined) return [];
  const { authorizationUrl: authorization } = passwords;
  return { "application-passwords": { endpoints: authorization === undefined ? {} : { authorization } } };
}

interface PasswordRoutesBase {
  passwords: ApplicationPasswords;
  users: Users;
  /** `core/v2` */
  namespace: string;
}

/** Returns the routes below `/users/me` and `/users/{id}`. */
export const applicationPasswordRoutes = (base: PasswordRoutesBase): RestRoute[] =>
  ["me", ":user_id"].flatMap((segment) => routesOfUser(segment, base));

function routesOfUser(segment: string, base: PasswordRoutesBase): RestRoute[] {
  const { passwords, namespace } = base;
  const path = `/users/${segment}/application-passwords`;
  const ids: Arguments = segment === "me" ? {} : { user_id: USER_ID };
  const withContext: Arguments = { ...ids, context: contextArgument };
  const access = createUserAccess(segment === "me", base.users);
  const { getUserId, permit } = access;

  const renderItem = createPasswordRenderer((request, uuid) =>
    request.url(`/${namespace}/users/${getUserId(request)}/application-passwords/${uuid}`),
  );
  const respond = (
    password: ApplicationPassword | undefined,
    request: RestRequest,
    context = readContext(request),
  ): RestResponse => {
    if (password === undefined) throw notFound();
    return { status: 200, headers: {}, body: { item: renderItem(password, request, context) } };
  };
  const list: RestEndpoint = {
    methods: ["GET"],
    args: withContext,
    described: { form: "items", errors: [404] },
    permit: permit("list"),
    async handle(request) {
      const all = await passwords.list(getUserId(request));
      const items = all.map((one) => renderItem(one, request, readContext(request)));
      return { status: 200, headers: {}, body: { items } };
    },
  };
  const create: RestEndpoint = {
    methods: ["POST"],
    args: { ...ids, app_id: appIdArgument, name: { ...NAME, required: true } },
    described: { form: "item", status: 201, context: "edit", errors: [404, 503] },
    permit: permit("create"),
    async handle(request) {
      const input = { name: readName(request), appId: toText(request.values["app_id"]) };
      const item = renderItem(await passwords.create(getUserId(request), input), request, "edit");
      const location = item.links["self"]?.[0]?.href ?? "";
      return { status: 201, headers: { location }, body: { item } };
    },
  };
  const read: RestEndpoint = {
    methods: ["GET"],
    args: { ...withContext, uuid: UUID },
    described: { form: "item", errors: [404] },
    permit: permit("read"),
    async handle(request) {
      const all = await passwords.list(getUserId(request));
      const found = all.find(({ uuid }) => uuid === request.values["uuid"]);
      return respond(found, request);
    },
  };
  const update: RestEndpoint = {
    methods: ["POST", "PUT", "PATCH"],
    args: { ...ids, uuid: UUID, app_id: appIdArgument, name: NAME },
    described: { form: "item", status: 200, context: "edit", errors: [404] },
    permit: permit("edit"),
    async handle(request) {
      const { values, isGiven } = request;
      const input = {
        ...(isGiven("name") && { name: readName(request) }),
        ...(isGiven("app_id") && { appId: toText(values["app_id"]) }),
      };
      const uuid = toText(values["uuid"]);
      return respond(await passwords.update(getUserId(request), uuid, input), request, "edit");
    },
  };
  const remove: RestEndpoint = {
    methods: ["DELETE"],
    args: { ...ids, uuid: UUID },
    described: { form: "deleted", errors: [404] },
    permit: permit("delete"),
    async handle(request) {
      const [revoked] = await passwords.revoke(getUserId(request), toText(request.values["uuid"]));
      if (revoked === undefined) throw notFound();
      const previous = renderItem(revoked, request, "edit").fields;
      return { status: 200, headers: {}, body: { json: { deleted: true, previous } } };
    },
  };

  return [
    { namespace, path, schema, endpoints: [list, create, createRemoveAll(passwords, ids, access)] },
    {
      namespace,
      path: `${path}/introspect`,
      schema,
      endpoints: [createIntrospection(passwords, withContext, getUserId, respond)],
    },
    { namespace, path: `${path}/:uuid(word)`, schema, endpoints: [read, update, remove] },
  ];
}

const createPasswordRenderer =
  (buildUrl: (request: RestRequest, uuid: string) => string) =>
  (password: ShownPassword, request: RestRequest, context: Context): Item => {
    const shown = password.password === undefined ? fieldsLater : fields;
    const links = { self: [{ href: buildUrl(request, password.uuid) }] };
    return createItem(selectRecordFields(password, shown, context), links);
  };

const createRemoveAll = (
  passwords: ApplicationPasswords,
  args: Arguments,
  { getUserId, permit }: ReturnType<typeof createUserAccess>,
): RestEndpoint => ({
  methods: ["DELETE"],
  args,
  described: { form: "json", schema: deletedAll, errors: [404] },
  permit: permit("deleteAll"),
  async handle(request) {
    const { length } = await passwords.revoke(getUserId(request));
    return { status: 200, headers: {}, body: { json: { deleted: true, count: length } } };
  },
});

/** Shows a caller the password that his request uses. */
const createIntrospection = (
  passwords: ApplicationPasswords,
  args: Arguments,
  getUserId: (request: RestRequest) => number,
  respond: (password: ApplicationPassword, request: RestRequest) => RestResponse,
): RestEndpoint => ({
  methods: ["GET"],
  args,
  described: { form: "item", errors: [404] },
  permit(request) {
    const { caller } = request;
    if (caller.id !== 0 && getUserId(request) === caller.id) return;
    throw refusal(
      caller,
      "rest_cannot_introspect_app_password_for_non_authenticated_user",
      "The authenticated application password can only be introspected for the current user.",
    );
  },
  async handle(request) {
    const { headers, caller } = request;
    const used = await passwords.identify({ headers, baseUrl: request.url("") });
    const all = used?.id === caller.id ? await passwords.list(caller.id) : [];
    const found = all.find(({ uuid }) => uuid === used?.uuid);
    if (found !== undefined) return respond(found, request);
    throw new RestError(404, "rest_no_authenticated_app_password", "Cannot introspect application password.");
  },
});

/** Finds the user of a path, and refuses callers who may not edit him. */
function createUserAccess(isMe: boolean, users: Users) {
  const getUserId = ({ values, caller }: RestRequest): number => {
    if (!isMe) return Number(values["user_id"]);
    if (caller.id !== 0) return caller.id;
    throw new RestError(401, "rest_not_logged_in", "You are not currently logged in.");
  };
  return {
    getUserId,
    permit: (action: keyof typeof REFUSALS) => async (request: RestRequest) => {
      const { caller } = request;
      const id = getUserId(request);
      if (id !== 0 && caller.id === id) return;
      // Before the user is looked up, so that ids cannot be probed.
      const [code, what] = REFUSALS[action];
      if (!caller.has("edit_users")) throw refusal(caller, code, `Sorry, you are not allowed to ${what}.`);
      if ((await users.get(id)) === null)
        throw new RestError(404, "rest_user_invalid_id", "Invalid user ID.");
    },
  };
}

const notFound = (): RestError =>
  new RestError(404, "rest_application_password_not_found", "Application password not found.");
