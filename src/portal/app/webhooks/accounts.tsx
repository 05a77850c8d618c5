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
import { formatNumber } from "../times.js";
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
      {inTrouble > 0 && <Badge tone="bad">{texts.accounts.failing({ count: inTrouble })}</Badge>}
      {disabled > 0 && <Badge tone="neutral">{texts.accounts.disabled({ count: disabled })}</Badge>}
      {ok > 0 && <Badge tone="good">{texts.accounts.healthy({ count: ok })}</Badge>}
    </span>
  );
}

const listColumns = (): Column<Row>[] => [
  {
    name: texts.accounts.account,
    class: "cut account",
    cell: ({ account }) => (
      <a href={pageOf(account, "/webhooks")} title={account}>
        <bdi>{account}</bdi>
      </a>
    ),
  },
  { name: texts.accounts.endpoints, cell: (row) => <Endpoints {...row} /> },
  { name: texts.accounts.waiting, isNumber: true, cell: ({ waiting }) => formatNumber(waiting) },
  { name: texts.accounts.success24h, isNumber: true, cell: ({ lastDay }) => formatSuccessRate(lastDay) },
  {
    name: texts.accounts.lastEvent,
    class: "time",
    cell: ({ lastEventAt }) => (lastEventAt === null ? "–" : <RelativeTime at={lastEventAt} />),
  },
];

const linkTo = ({ account, kind, webhookId = "", deliveryId = "" }: FoundAccountJson): string => {
  if (kind === "account") return pageOf(account, "/webhooks");
  const hash = kind === "endpoint" ? `/webhooks/${webhookId}` : deliveryLink({ webhookId, id: deliveryId });
  return pageOf(account, hash.replace(/^#/, ""));
};

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

const listFoundTexts = () => ({
  searching: texts.accounts.placesSearching,
  stopped: texts.accounts.placesStopped,
  done: texts.accounts.placesDone,
});

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
      <Form
        label={texts.accounts.searchAll}
        submit={texts.common.search}
        kind="plain"
        isRow
        act={() => search()}
      >
        <TextField
          label={texts.accounts.searchLabel}
          type="search"
          maxLength={256}
          value={text}
          onChange={setText}
        />
      </Form>
      {found !== undefined && (
        <section class="card" aria-label={texts.accounts.found}>
          <p role="status">{listFoundTexts()[found.state]({ count: found.items.length })}</p>
          {found.state === "stopped" && (
            <ActionButton act={() => search(found)}>{texts.accounts.further}</ActionButton>
          )}
          <ul>
            {found.items.map((item) => (
              <li key={item.account}>
                <a href={linkTo(item)}>
                  {texts.accounts.kinds[item.kind]({ account: <bdi>{item.account}</bdi> })}
                </a>
              </li>
            ))}
          </ul>
        </section>
      )}
    </>
  );
}

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
        <p class="empty">{state === "" ? texts.accounts.noEndpoint : texts.accounts.nothingFails}</p>
      ) : (
        <div class="accounts">
          <Table
            caption={texts.views.accounts}
            columns={listColumns()}
            header={texts.accounts.account}
            opens
            rows={data.items.map((account) => ({ ...account, key: account.account }))}
          />
        </div>
      )}
      <PagerButtons pager={pager} next={data.next} labels={[texts.accounts.back, texts.accounts.more]} />
    </>
  );
}

function AccountList({ query }: ViewProps) {
  const asked = query.get("state");
  const state = asked === "all" ? "" : "failing";
  return (
    <>
      <Heading title={texts.views.accounts} />
      <div class="row account-tools">
        <SelectField
          label={texts.accounts.show}
          value={state}
          onChange={(value) => {
            location.hash = value === "" ? "/accounts?state=all" : "/accounts";
          }}
          options={[
            ["failing", texts.accounts.failingFilter],
            ["", texts.accounts.all],
          ]}
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
    <aside class="account-bar" aria-label={texts.accounts.account}>
      <p>
        {texts.accounts.bar({
          account: (
            <strong>
              <bdi>{account}</bdi>
            </strong>
          ),
          name: session.name,
        })}
      </p>
      <a href={pageOf(undefined, "/accounts")}>{texts.accounts.all}</a>
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
