/** The accounts in the portal's API, for operators: a list, and a search over all of them. */

import { isPostbellError } from "../core/errors.js";
import { isUuid } from "../core/uuid.js";
import { HttpError, rateLimited } from "../http/errors.js";
import type { RateLimit } from "../http/rate-limit.js";
import type { ListAccounts } from "../webhooks/accounts.js";
import { type ApiCall, type ApiRoute, jsonResponse, notFoundHere } from "./api.js";
import type { PortalSettings, PortalWebhooks } from "./options.js";
import type { FoundAccountJson } from "./shapes.js";

/** Whom the requests of an operator count for. Names of accounts have no NUL. */
export const payerOf = (operator: string): string => `\u0000${operator}`;

type AccountList = NonNullable<PortalWebhooks["accounts"]>;

/** For a visitor who is not an operator, the paths do not exist. */
export const accountRoutes = ({ webhooks }: PortalSettings, limit: RateLimit): ApiRoute[] => {
  const admit = ({
    visitor: { operator, name },
  }: ApiCall): { accounts: AccountList; service: PortalWebhooks } => {
    if (operator !== true || webhooks?.accounts === undefined) throw notFoundHere();
    const seconds = limit.take(payerOf(name));
    if (seconds > 0) throw rateLimited(seconds, "You send too many requests");
    return { accounts: webhooks.accounts, service: webhooks };
  };
  return [
    {
      method: "GET",
      path: "/api/accounts",
      async handle(call) {
        const { accounts } = admit(call);
        const page = { ...readListQuery(call.query), operator: call.visitor.name };
        return jsonResponse(200, await refuseWrong(async () => accounts.list(page)));
      },
    },
    {
      method: "GET",
      path: "/api/accounts/search",
      async handle(call) {
        const { accounts, service } = admit(call);
        const text = readSearch(call.query);
        const { name: operator } = call.visitor;
        const cursor = call.query.get("cursor") ?? undefined;
        const { items, next } = await refuseWrong(async () =>
          accounts.list({ cursor, limit: SEARCHED_ACCOUNTS, operator }),
        );
        const found: FoundAccountJson[] = [];
        for (const { account } of items) {
          const match = await findInAccount(service.as({ operator, account }), account, text);
          if (match !== undefined) found.push({ account, ...match });
        }
        limit.charge(payerOf(operator), items.length);
        return jsonResponse(200, { items: found, next });
      },
    },
  ];
};

/** Turns what the service refuses in an argument into 400. */
async function refuseWrong<T>(call: () => Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (error) {
    if (!isPostbellError(error, "invalid_argument") && !isPostbellError(error, "invalid_request"))
      throw error;
    throw new HttpError(400, "invalid_request", error.message);
  }
}

function readListQuery(query: URLSearchParams): ListAccounts {
  const state = query.get("state") ?? undefined;
  if (state !== undefined && state !== "failing")
    throw new HttpError(400, "invalid_request", "state must be failing, or left out for all accounts.");
  const limit = query.get("limit");
  return {
    state,
    cursor: query.get("cursor") ?? undefined,
    limit: limit === null ? undefined : Number(limit),
  };
}

/** Accounts that one request searches: each costs a few calls of the storage. */
const SEARCHED_ACCOUNTS = 20;
const MAX_SEARCH = 256;

function readSearch(query: URLSearchParams): string {
  const text = (query.get("q") ?? "").trim();
  if (text !== "" && text.length <= MAX_SEARCH) return text;
  throw new HttpError(400, "invalid_request", `q must be a text of 1 to ${MAX_SEARCH} characters.`);
}

/** The id of an event, alone or within the id of a delivery. */
const EVENT_ID = /^(?:[0-9a-f-]{36}\.)?([0-9a-f-]{36})(?:\.[0-9]{1,9})?$/;

/**
 * Finds a text in an account: in its name, in the ids, names and addresses of its first hundred
 * endpoints, or as the id or the subject of an event.
 */
async function findInAccount(
  { registrations, deliveries }: ReturnType<PortalWebhooks["as"]>,
  account: string,
  typed: string,
): Promise<Omit<FoundAccountJson, "account"> | undefined> {
  const text = typed.toLowerCase();
  if (account.toLowerCase().includes(text)) return { kind: "account" };
  const { items } = await registrations.list({ limit: 100 });
  const endpoint = items.find(({ id, url, description }) =>
    [id, url, description ?? ""].some((value) => value.toLowerCase().includes(text)),
  );
  if (endpoint !== undefined) return { kind: "endpoint", webhookId: endpoint.id };
  const eventId = EVENT_ID.exec(text)?.[1];
  const key = eventId !== undefined && isUuid(eventId) ? { eventId } : { subject: typed };
  const [delivery] = (await deliveries.list({ ...key, limit: 1 })).items;
  return delivery && { kind: "event", webhookId: delivery.webhookId, deliveryId: delivery.id };
}
