/** All accounts at a glance, for an operator: those that fail first, and a search over all of them. */

import { useState } from "preact/hooks";
import type { AccountJson, AccountPageJson, FoundAccountJson } from "../../shapes.js";
import { ActionButton } from "../components/button.js";
import { Form, SelectField, TextField } from "../components/form.js";
import { Users } from "../components/icons.js";
import { Badge, ErrorMessage, Heading, Loading, RelativeTime } from "../components/small.js";
import { type Column, PagerButtons, Table, usePager } from "../components/table.js";
import { useLeaveSignal, usePage } from "../page-context.js";
import { texts } from "../texts.js";
import { pluralise } from "../times.js";
import { useResource } from "../use-resource.js";
import { pageOf, type View, type ViewProps } from "../view.js";
import { deliveryLink } from "./calls.js";
import { formatSuccessRate } from "./wording.js";

const PER_PAGE = 50;

interface Row extends AccountJson {
  key: string;
}

/** The endpoints of an account by their health, those in trouble first. */
function Endpoints({ endpoints: { ok, failing, warned, disabled } }: AccountJson) {
  const inTrouble = failing + warned;
  return (
    <span class="endpoint-counts">
      {inTrouble > 0 && <Badge tone="bad">{inTrouble} failing</Badge>}
      {disabled > 0 && <Badge tone="neutral">{disabled} disabled</Badge>}
      {ok > 0 && <Badge tone="good">{ok} healthy</Badge>}
    </span>
  );
}

const COLUMNS: Column<Row>[] = [
  {
    name: "Account",
    class: "cut account",
    cell: ({ account }) => (
      <a href={pageOf(account, "/webhooks")} title={account}>
        <bdi>{account}</bdi>
      </a>
    ),
  },
  { name: "Endpoints", cell: (row) => <Endpoints {...row} /> },
  { name: "Waiting", isNumber: true, cell: ({ waiting }) => waiting.toLocaleString("en-GB") },
  { name: "Success, 24 h", isNumber: true, cell: ({ lastDay }) => formatSuccessRate(lastDay) },
  {
    name: "Last event",
    class: "time",
    cell: ({ lastEventAt }) => (lastEventAt === null ? "–" : <RelativeTime at={lastEventAt} />),
  },
];

const linkTo = ({ account, kind, webhookId = "", deliveryId = "" }: FoundAccountJson): string => {
  if (kind === "account") return pageOf(account, "/webhooks");
  const hash = kind === "endpoint" ? `/webhooks/${webhookId}` : deliveryLink({ webhookId, id: deliveryId });
  return pageOf(account, hash.replace(/^#/, ""));
};

const KINDS = { account: "the account", endpoint: "an endpoint of", event: "an event of" } as const;

/** Results that are shown. */
const MAX_FOUND = 50;
/** Requests of one press. All operators share a limit of requests. */
const MAX_REQUESTS = 25;

interface Found {
  items: FoundAccountJson[];
  state: "searching" | "stopped" | "done";
  /** Where the search goes on. */
  next: string | undefined;
}

/** Searches all accounts, some at a time, and says how far it is. */
function AccountSearch() {
  const { api } = usePage();
  const left = useLeaveSignal();
  const [text, setText] = useState("");
  const [found, setFound] = useState<Found>();
  const search = async (from?: Found): Promise<void> => {
    const items = [...(from?.items ?? [])];
    let next = from?.next;
    setFound({ items, state: "searching", next });
    try {
      for (let requests = 0; requests < MAX_REQUESTS && items.length < MAX_FOUND; requests += 1) {
        const page: { items: FoundAccountJson[]; next: string | null } = await api
          .within(left)
          .get("accounts/search", { q: text.trim(), cursor: next });
        items.push(...page.items);
        next = page.next ?? undefined;
        setFound({ items: [...items], state: next === undefined ? "done" : "searching", next });
        if (next === undefined) return;
      }
    } finally {
      setFound((now) => (now?.state === "searching" ? { items, state: "stopped", next } : now));
    }
  };
  return (
    <>
      <Form label="Search all accounts" submit="Search" kind="plain" isRow act={() => search()}>
        <TextField
          label="Account, endpoint, event ID or subject"
          type="search"
          maxLength={256}
          value={text}
          onChange={setText}
        />
      </Form>
      {found !== undefined && (
        <section class="card" aria-label="Found">
          <p role="status">
            {pluralise(found.items.length, "place", "places")} found
            {{ searching: ", searching …", stopped: " so far.", done: "." }[found.state]}
          </p>
          {found.state === "stopped" && <ActionButton act={() => search(found)}>Search further</ActionButton>}
          <ul>
            {found.items.map((item) => (
              <li key={item.account}>
                <a href={linkTo(item)}>
                  {KINDS[item.kind]} <bdi>{item.account}</bdi>
                </a>
              </li>
            ))}
          </ul>
        </section>
      )}
    </>
  );
}

const STATES: [string, string][] = [
  ["failing", "Failing"],
  ["", "All accounts"],
];

function Listing({ state }: { state: string }) {
  const pager = usePager();
  const { data, error } = useResource(
    (api) => api.get<AccountPageJson>("accounts", { state, cursor: pager.cursor, limit: PER_PAGE }),
    [state, pager.cursor],
  );
  if (error !== undefined) return <ErrorMessage error={error} />;
  if (data === undefined) return <Loading />;
  return (
    <>
      {data.items.length === 0 ? (
        <p class="empty">
          {state === ""
            ? "No account has an endpoint yet."
            : "Nothing fails: every endpoint of every account accepts deliveries."}
        </p>
      ) : (
        <div class="accounts">
          <Table
            caption="Accounts"
            columns={COLUMNS}
            header="Account"
            opens
            rows={data.items.map((account) => ({ ...account, key: account.account }))}
          />
        </div>
      )}
      <PagerButtons pager={pager} next={data.next} labels={["Back", "More accounts"]} />
    </>
  );
}

function AccountList({ query }: ViewProps) {
  const asked = query.get("state");
  const state = asked === "all" ? "" : "failing";
  return (
    <>
      <Heading title="Accounts" />
      <div class="row account-tools">
        <SelectField
          label="Show"
          value={state}
          onChange={(value) => {
            location.hash = value === "" ? "/accounts?state=all" : "/accounts";
          }}
          options={STATES}
        />
        <AccountSearch />
      </div>
      <Listing key={state} state={state} />
    </>
  );
}

/** Says whose portal an operator looks at, and leads back to all accounts. */
export function AccountBar({ account }: { account: string }) {
  const { session } = usePage();
  return (
    <aside class="account-bar" aria-label="Account">
      <p>
        You look at the account{" "}
        <strong>
          <bdi>{account}</bdi>
        </strong>{" "}
        as {session.name}. What you do is recorded under your name.
      </p>
      <a href={pageOf(undefined, "/accounts")}>All accounts</a>
    </aside>
  );
}

export const accountsView: View = {
  path: "/accounts",
  part: "accounts",
  label: () => texts.views.accounts,
  icon: Users,
  component: AccountList,
  key: () => "accounts",
};
