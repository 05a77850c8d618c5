/**
 * The notifier against real SMTP servers. Calls of the service come on a manual clock, so that
 * three days pass at once.
 */

import { EventEmitter } from "node:events";
import { createTransport } from "nodemailer";
import { describe, expect, it, onTestFinished } from "vitest";
import { type MailFacts, type SmtpNotifierOptions, smtpNotifier } from "../../../adapters/smtp/index.js";
import { isPostbellError } from "../../../src/core/errors.js";
import type { Webhook } from "../../../src/index.js";
import { type ManualClock, manualClock } from "../../../src/testing/manual-clock.js";
import { issue, makeAuthority } from "../../support/certificates.js";
import { startEndpoint } from "../../support/https-endpoint.js";
import { type MailServer, type MailServerOptions, startMailServer } from "../../support/mail-server.js";
import { recordingLogger } from "../../support/registration-api.js";
import { DAY, HOUR, MINUTE, START, startHarness } from "../../support/webhook-harness.js";

const FROM = "Webhooks <hooks@clinic.example>";
const TO = "ops@clinic.example";
const WEBHOOK: Webhook = {
  id: "7c9b1f0e-3d52-4c1b-9e6f-2a4d8e0b1c3d",
  subscriberId: "key-1",
  account: "clinic",
  url: "https://user:pass@hooks.example.com/in/%3Cb%3E?token=s3cret&x=1#part",
  status: "ENABLED",
  eventTypes: null,
  createdAt: new Date("2026-01-01T00:00:00.000Z"),
  updatedAt: new Date("2026-01-01T00:00:00.000Z"),
  failingSince: new Date("2026-01-01T00:00:00.000Z"),
  description: null,
  metadata: null,
};
const SINCE = new Date(START);
const FAILING = {
  webhook: WEBHOOK,
  failingSince: SINCE,
  lastFailure: { at: new Date(START + 2 * DAY), kind: "http", status: 500, code: "HTTP_500" },
  pending: 12,
} as const;
const DISABLE_AT = new Date(START + 4 * DAY);
const WARNING = { ...FAILING, disableAt: DISABLE_AT, retriedUntil: DISABLE_AT };
const DISABLED = { ...FAILING, webhook: { ...WEBHOOK, status: "DISABLED" as const } };

async function mailServer(options?: MailServerOptions): Promise<MailServer> {
  const server = await startMailServer(options);
  onTestFinished(() => server.close());
  return server;
}

function notifierFor(
  server: { readonly url: string },
  {
    clock = manualClock(START + 3 * DAY),
    ...options
  }: Partial<SmtpNotifierOptions> & { readonly clock?: ManualClock } = {},
) {
  const { logger, log } = recordingLogger();
  const notifier = smtpNotifier({ transport: server.url, from: FROM, to: TO, clock, logger, ...options });
  onTestFinished(() => notifier.close());
  return { notifier, clock, log };
}

/** The code and message of what a call is refused with. */
const refusalOf = (call: unknown): Promise<string> =>
  Promise.resolve(call).then(
    () => "it was sent",
    (error: unknown) => (isPostbellError(error) ? `${error.code}: ${error.message}` : String(error)),
  );

const recipientsOf = ({ mails }: MailServer): readonly (readonly string[])[] =>
  mails.map(({ recipients }) => recipients);

describe("the mails", () => {
  it("warn with the endpoint, since when it fails, when it is disabled and where to look, as text and as HTML", async () => {
    const server = await mailServer();
    const { notifier } = notifierFor(server, {
      portalUrl: ({ id }) => `https://clinic.example/portal?w=${id}&a=1`,
    });
    await notifier.warning(WARNING);
    const [taken] = server.mails;
    expect(taken?.mail).toMatchObject({
      subject: "Webhook endpoint hooks.example.com is failing and will be disabled in 24 hours",
      from: { name: "Webhooks", address: "hooks@clinic.example" },
      to: [{ address: TO }],
      messageId: `<postbell.warning.${WEBHOOK.id}.${START}@clinic.example>`,
      date: "2026-01-04T00:00:00.000Z",
    });
    for (const said of [
      "https://hooks.example.com/in/%3Cb%3E",
      "has not returned a 2xx response for 3 days, since Thursday 1 January 2026, 00:00 UTC",
      "Last failure: HTTP 500 on Saturday 3 January 2026, 00:00 UTC.",
      "12 deliveries are waiting. They are retried until Monday 5 January 2026, 00:00 UTC at the latest.",
      "will be disabled in 24 hours, on Monday 5 January 2026, 00:00 UTC",
    ]) {
      expect(taken?.mail.text).toContain(said);
      expect(taken?.mail.html).toContain(said);
    }
    const link = `https://clinic.example/portal?w=${WEBHOOK.id}&a=1`;
    expect(taken?.mail.text).toContain(`    ${link}\n`);
    expect(taken?.mail.html).toContain(`<a href="${link.replace("&", "&amp;")}">`);
    expect(taken?.raw).not.toMatch(/token|s3cret|user|pass@|#part/);
    expect(taken?.mail.headers.find(({ key }) => key === "auto-submitted")?.value).toBe("auto-generated");
  });

  it("tell of the disabling in the same thread, and what to do", async () => {
    const server = await mailServer();
    const { notifier } = notifierFor(server);
    await notifier.disabled(DISABLED);
    expect(server.mails[0]?.mail).toMatchObject({
      subject: "Webhook endpoint hooks.example.com was disabled",
      inReplyTo: `<postbell.warning.${WEBHOOK.id}.${START}@clinic.example>`,
      messageId: `<postbell.disabled.${WEBHOOK.id}.${START}@clinic.example>`,
    });
    expect(server.mails[0]?.mail.text).toContain("Last failure: HTTP 500 on Saturday 3 January");
    expect(server.mails[0]?.mail.text).toContain("12 deliveries are waiting and will not be attempted");
    expect(server.mails[0]?.mail.text).toContain("enable it, then retry what it missed");
    expect(server.mails[0]?.mail.text).not.toContain("null");
  });

  it("say nothing of failures and deliveries that are not known, and describe a failure without a status", async () => {
    const server = await mailServer();
    const { notifier } = notifierFor(server);
    await notifier.warning({ ...WARNING, lastFailure: null, pending: 0 });
    expect(server.mails[0]?.mail.text).not.toMatch(/Last failure|waiting|null/);
    const lastFailure = { at: SINCE, kind: "connect", status: null, code: "ECONNREFUSED" } as const;
    await notifier.disabled({ ...DISABLED, lastFailure, pending: 1 });
    expect(server.mails[1]?.mail.text).toContain("Last failure: No connection (ECONNREFUSED) on Thursday");
    expect(server.mails[1]?.mail.text).toContain("1 delivery is waiting and will not be attempted");
    await notifier.warning({ ...WARNING, failingSince: new Date(START + HOUR), pending: 1 });
    expect(server.mails[2]?.mail.text).toContain("1 delivery is waiting. It is retried until Monday");
  });

  it("are those of the host's templates where it has some, with a subject of one line", async () => {
    const server = await mailServer();
    const seen: MailFacts[] = [];
    const { notifier } = notifierFor(server, {
      templates: {
        warning: (facts) => {
          seen.push(facts);
          return {
            subject: `Achtung\r\nBcc: all@example.org\u2028${facts.host}`,
            text: `bis ${facts.disableAtText}`,
          };
        },
      },
    });
    await notifier.warning(WARNING);
    await notifier.disabled(DISABLED);
    expect(server.mails[0]?.mail).toMatchObject({
      subject: "Achtung Bcc: all@example.org hooks.example.com",
      text: "bis Monday 5 January 2026, 00:00 UTC\n",
    });
    expect(server.mails[0]?.mail.html).toBeUndefined();
    expect(recipientsOf(server)).toEqual([[TO], [TO]]);
    expect(seen).toMatchObject([
      { kind: "warning", endpoint: "https://hooks.example.com/in/%3Cb%3E", portalUrl: null },
    ]);
    expect(server.mails[1]?.mail.subject).toContain("was disabled");
  });

  it("escape in HTML what a subscriber can write", async () => {
    const server = await mailServer();
    const { notifier } = notifierFor(server);
    const url = "https://hooks.example.com/'onload='a&lt;/in";
    await notifier.warning({ ...WARNING, webhook: { ...WEBHOOK, url } });
    expect(server.mails[0]?.mail.text).toContain(url);
    expect(server.mails[0]?.mail.html).toContain("https://hooks.example.com/&#39;onload=&#39;a&amp;lt;/in");
  });
});

describe("the recipients", () => {
  it("are whom the host names for the webhook, each once; nobody gets no mail", async () => {
    const server = await mailServer();
    const asked: string[] = [];
    const { notifier } = notifierFor(server, {
      to: async ({ account, status }) => {
        asked.push(account);
        return status === "DISABLED" ? null : ["Ana <ana@a.example>", "ben@b.example", "ana@A.example"];
      },
    });
    await notifier.warning(WARNING);
    await notifier.disabled(DISABLED);
    expect(asked).toEqual(["clinic", "clinic"]);
    expect(recipientsOf(server)).toEqual([["ana@a.example", "ben@b.example"]]);
  });

  it.each([
    ["a second address", "ops@clinic.example, all@example.org"],
    ["a line end", "ops@clinic.example\r\nBcc: all@example.org"],
    ["a group", "all: ops@clinic.example;"],
    ["no domain", "ops"],
    ["a name over two lines", "Ops\nBcc: x <ops@clinic.example>"],
    ["no text", 7],
  ])("are refused one by one where one is no address: %s", async (_, bad) => {
    const server = await mailServer();
    const { notifier, log } = notifierFor(server, { to: () => [bad as string, TO] });
    await notifier.warning(WARNING);
    expect(recipientsOf(server)).toEqual([[TO]]);
    expect(log).toMatchObject([{ level: "error", message: "a recipient is not a valid mail address" }]);
  });

  it("that cannot be found out make the call fail, so that it comes again", async () => {
    const server = await mailServer();
    const { notifier } = notifierFor(server, { to: () => Promise.reject(new Error("directory away")) });
    await expect(notifier.warning(WARNING)).rejects.toThrow("directory away");
    const { notifier: wrong } = notifierFor(server, { to: (() => 7) as never });
    expect(await refusalOf(wrong.warning(WARNING))).toMatch(/^mail_not_sent/);
    expect(server.mails).toEqual([]);
  });
});

describe("a mail server that refuses", () => {
  it("one recipient for good: the others have the mail, it is logged, and that one is not retried", async () => {
    const server = await mailServer({
      recipient: (to) => (to.startsWith("gone") ? "550 5.1.1 No such user" : undefined),
    });
    const { notifier, log } = notifierFor(server, { to: [TO, "gone@clinic.example"] });
    await notifier.warning(WARNING);
    await notifier.warning(WARNING);
    expect(recipientsOf(server)).toEqual([[TO]]);
    expect(log).toMatchObject([
      { level: "error", fields: { webhook: WEBHOOK.id, recipient: "gone@clinic.example", status: 550 } },
    ]);
  });

  it.each<[string, MailServerOptions]>([
    ["every recipient", { recipient: () => "550 5.1.1 No such user" }],
    ["the message", { message: () => "554 5.7.1 Looks like spam" }],
  ])("%s for good: it is logged, and the notification counts as sent", async (_, options) => {
    const server = await mailServer(options);
    const { notifier, log } = notifierFor(server);
    await notifier.warning(WARNING);
    expect(server.mails).toEqual([]);
    expect(log.map(({ message }) => message)).toEqual(["a recipient was refused by the mail server"]);
  });

  it.each<[string, MailServerOptions, RegExp]>([
    ["for now, as greylisting does", { recipient: () => "451 4.7.1 Greylisted" }, /deferred it \(451\)/],
    ["the message for now", { message: () => "452 4.3.1 Full" }, /EMESSAGE 452/],
    ["the sender", { sender: () => "553 5.1.8 Not you" }, /EENVELOPE 553/],
  ])("%s: the call fails, so that it is retried", async (_, options, reason) => {
    let isOver = false;
    const now = (judge: MailServerOptions["sender"]) =>
      judge ? (text: string) => (isOver ? undefined : judge(text)) : undefined;
    const server = await mailServer({
      recipient: now(options.recipient),
      message: now(options.message),
      sender: now(options.sender),
    });
    const { notifier } = notifierFor(server);
    const refusal = await refusalOf(notifier.warning(WARNING));
    expect(refusal).toMatch(/^mail_not_sent/);
    expect(refusal).toMatch(reason);
    expect(refusal).not.toContain("ops@");
    isOver = true;
    await notifier.warning(WARNING);
    expect(recipientsOf(server)).toEqual([[TO]]);
  });

  it("one of two for now: the other has the mail once, and after an hour the first is given up", async () => {
    const server = await mailServer({
      recipient: (to) => (to.startsWith("full") ? "452 4.2.2 Mailbox full" : undefined),
    });
    const { notifier, clock, log } = notifierFor(server, { to: [TO, "full@clinic.example"] });
    expect(await refusalOf(notifier.warning(WARNING))).toMatch(/deferred it \(452\)/);
    await clock.advance(59 * MINUTE);
    expect(await refusalOf(notifier.warning(WARNING))).toMatch(/deferred it \(452\)/);
    expect(log).toEqual([]);
    await clock.advance(MINUTE);
    await notifier.warning(WARNING);
    expect(log).toMatchObject([
      { level: "error", fields: { recipient: "full@clinic.example", status: 452 } },
    ]);
    expect(recipientsOf(server)).toEqual([[TO]]);
  });
});

describe("a mail server", () => {
  it("that is away makes the call fail, and gets the mail when it is back", async () => {
    const first = await startMailServer();
    await first.close();
    const { notifier } = notifierFor(first);
    expect(await refusalOf(notifier.warning(WARNING))).toMatch(/ECONNREFUSED|ESOCKET/);
    const second = await mailServer({ port: first.port });
    await notifier.warning(WARNING);
    expect(recipientsOf(second)).toEqual([[TO]]);
  });

  it("that is slow is given up in time, and its connection dropped", async () => {
    const slow = await startEndpoint({ onConnection: () => {} });
    onTestFinished(() => slow.close());
    const { notifier, clock } = notifierFor(
      { url: `smtp://127.0.0.1:${slow.port}` },
      // So long that nodemailer's own time-outs, which are real, end nothing here.
      { timeoutMs: 60_000 },
    );
    const refusal = refusalOf(notifier.warning(WARNING));
    while (slow.connections() === 0) await new Promise((resolve) => setImmediate(resolve));
    await clock.advance(60_000);
    expect(await refusal).toBe(
      "mail_not_sent: smtpNotifier: the mail was not sent: the mail server took too long.",
    );
    while (slow.openConnections() > 0) await new Promise((resolve) => setImmediate(resolve));
  });

  it("gets the mails of endpoints that fail together over one connection; none is sent after its time", async () => {
    let release: () => void = () => {};
    let isSlow = false;
    const server = await mailServer({
      message: () => (isSlow ? new Promise((resolve) => (release = () => resolve(undefined))) : undefined),
    });
    const { notifier, clock } = notifierFor(server);
    const warn = (id: number) =>
      notifier.warning({ ...WARNING, webhook: { ...WEBHOOK, id: `${WEBHOOK.id.slice(0, -1)}${id}` } });
    await Promise.all([1, 2, 3].map(warn));
    expect(server.mails).toHaveLength(3);
    expect(server.connections()).toBe(1);
    isSlow = true;
    const before = release;
    const late = [4, 5].map((id) => refusalOf(warn(id)));
    while (release === before) await new Promise((resolve) => setImmediate(resolve));
    await clock.advance(4_000);
    expect((await Promise.all(late)).map((text) => text.split(": ").at(-1))).toEqual([
      "the mail server took too long.",
      "the mails before it took too long.",
    ]);
    isSlow = false;
    release();
    await Promise.all([4, 5].map(warn));
    const ids = server.mails.map(({ mail }) => mail.messageId?.split(".")[2]?.at(-1));
    // The server may have accepted a complete mail after the deadline: the same Message-ID shows
    // it.
    expect([...new Set(ids)]).toEqual(["1", "2", "3", "4", "5"]);
    expect(ids.filter((id) => id === "5")).toHaveLength(1);
  });

  it("gets no second mail beside one that is late: a transporter may not know how to drop it", async () => {
    const sent: ((result: object) => void)[] = [];
    const transporter = { sendMail: () => new Promise<object>((resolve) => sent.push(resolve)) };
    const { notifier, clock } = notifierFor({ url: "" }, { transport: transporter });
    const warn = async (): Promise<string> => {
      const refusal = refusalOf(notifier.warning(WARNING));
      await clock.advance(4_000);
      return refusal;
    };
    expect(await warn()).toContain("took too long");
    await clock.advance(MINUTE);
    expect(await warn()).toContain("has not responded to the last one yet");
    expect(sent).toHaveLength(1);
    sent[0]?.({ accepted: [TO] });
    await clock.advance(MINUTE);
    expect(await warn()).toBe("it was sent");
    expect(sent).toHaveLength(1);
  });

  it("retries when a late mail failed after all, or never got a response", async () => {
    const sent: ((error: Error) => void)[] = [];
    const transporter = { sendMail: () => new Promise<never>((_, reject) => sent.push(reject)) };
    const { notifier, clock } = notifierFor({ url: "" }, { transport: transporter });
    const warn = async (): Promise<void> => {
      const refusal = refusalOf(notifier.warning(WARNING));
      await clock.advance(4_000);
      expect(await refusal).toMatch(/^mail_not_sent/);
    };
    await warn();
    sent[0]?.(new Error("away"));
    await clock.advance(1);
    await warn();
    expect(sent).toHaveLength(2);
    await clock.advance(15 * MINUTE);
    await warn();
    expect(sent).toHaveLength(3);
  });

  it("gets no second mail for a period that is told again: the notice could not be recorded", async () => {
    const server = await mailServer();
    const { notifier } = notifierFor(server);
    await notifier.warning(WARNING);
    await notifier.warning(WARNING);
    expect(server.mails).toHaveLength(1);
    await notifier.warning({ ...WARNING, failingSince: new Date(START + DAY) });
    expect(server.mails).toHaveLength(2);
    expect(new Set(server.mails.map(({ mail }) => mail.messageId)).size).toBe(2);
  });

  it("is asked for STARTTLS and a login, with the certificate verified; without encryption no password is sent", async () => {
    const authority = await makeAuthority();
    const certificate = await issue({ authority, names: ["127.0.0.1"] });
    const logins: unknown[] = [];
    const server = await mailServer({
      server: {
        ...certificate,
        disabledCommands: [],
        authOptional: false,
        onAuth({ username, password }, _, done) {
          logins.push([username, password]);
          if (password === "right") done(null, { user: username });
          else done(new Error("wrong"));
        },
      },
    });
    const transport = {
      host: "127.0.0.1",
      port: server.port,
      auth: { user: "hooks", pass: "right" },
      tls: { ca: authority.cert },
    };
    await notifierFor(server, { transport }).notifier.warning(WARNING);
    expect(server.mails).toMatchObject([{ isEncrypted: true, user: "hooks" }]);

    const wrong = { ...transport, auth: { user: "hooks", pass: "wr0ng" } };
    const refusal = await refusalOf(notifierFor(server, { transport: wrong }).notifier.warning(WARNING));
    expect(refusal).toContain("EAUTH 535");
    expect(refusal).not.toContain("wr0ng");
    const unknown = await refusalOf(
      notifierFor(server, { transport: { ...transport, tls: {} } }).notifier.warning(WARNING),
    );
    expect(unknown).toMatch(/^mail_not_sent/);
    expect(logins).toEqual([
      ["hooks", "right"],
      ["hooks", "wr0ng"],
    ]);

    const plain = await mailServer({
      server: {
        authOptional: false,
        allowInsecureAuth: true,
        onAuth: ({ password }, _, done) => {
          logins.push(password);
          done(null, { user: 1 });
        },
      },
    });
    for (const given of [`smtp://hooks:right@127.0.0.1:${plain.port}`, { ...transport, port: plain.port }]) {
      expect(await refusalOf(notifierFor(plain, { transport: given }).notifier.warning(WARNING))).toMatch(
        /ETLS|ESOCKET/,
      );
    }
    expect(logins).toHaveLength(2);
  });

  it("may be lost by the host's own transporter between two mails", async () => {
    const transporter = Object.assign(new EventEmitter(), { sendMail: async () => ({ accepted: [TO] }) });
    const { notifier } = notifierFor({ url: "" }, { transport: transporter });
    await notifier.warning(WARNING);
    expect(transporter.emit("error", new Error("the token could not be renewed"))).toBe(true);
    await notifier.disabled(DISABLED);
  });

  it("is reached through the host's own transporter, which stays open", async () => {
    const server = await mailServer();
    const transporter = createTransport({ host: "127.0.0.1", port: server.port });
    const { notifier } = notifierFor(server, { transport: transporter });
    await notifier.warning(WARNING);
    await notifier.close();
    await notifier.disabled(DISABLED);
    expect(server.mails).toHaveLength(2);
  });
});

describe("a service with this notifier", () => {
  it("mails the warning after three days and the disabling after four, greylisted or not, and gives the connection back", async () => {
    let putOff = 2;
    const server = await mailServer({ recipient: () => (putOff-- > 0 ? "451 4.7.1 Greylisted" : undefined) });
    const { notifier, log, clock } = notifierFor(server, { clock: manualClock(START) });
    let isClosed = false;
    const close = async (): Promise<void> => {
      await notifier.close();
      isClosed = true;
    };
    const harness = await startHarness({
      clock,
      answer: () => 500,
      options: { notify: { ...notifier, close } },
    });
    const { id } = await harness.register();
    await harness.emit();
    /**
     * To a time of the schedule, and until the mail of that time is through: the clock stands
     * meanwhile.
     */
    const until = async (at: number): Promise<number> => {
      await harness.runUntil(at);
      await harness.webhooks.idle();
      return server.mails.length;
    };
    expect(await until(START + 72 * HOUR - 1)).toBe(0);
    expect(await until(START + 72 * HOUR)).toBe(0);
    expect(await until(START + 72 * HOUR + MINUTE)).toBe(0);
    expect(await until(START + 72 * HOUR + 2 * MINUTE)).toBe(1);
    expect(await until(START + 96 * HOUR + MINUTE)).toBe(1);
    expect(await until(START + 96 * HOUR + 2 * MINUTE)).toBe(2);
    expect(await until(START + 10 * DAY)).toBe(2);
    expect(server.mails.map(({ mail }) => mail.messageId?.split(".").slice(0, 3).join("."))).toEqual([
      `<postbell.warning.${id}`,
      `<postbell.disabled.${id}`,
    ]);
    expect(harness.log.filter((line) => line.includes("a notifier of the host failed"))).toHaveLength(2);
    expect(log).toEqual([]);
    await harness.webhooks.stop();
    expect(isClosed).toBe(true);
    await server.idle();
  });
});

describe("smtpNotifier()", () => {
  it.each([
    ["transport", { transport: undefined }],
    ["transport", { transport: "https://mail.example.org" }],
    ["from", { from: "Ops\r\nBcc: x@y.example <a@b.example>" }],
    ["from", { from: undefined }],
    ["to", { to: "a@b.example, c@d.example" }],
    ["to", { to: [] }],
    ["templates.other", { templates: { other: () => ({}) } }],
    ["timeoutMs", { timeoutMs: 0 }],
    ["too", { too: TO }],
  ])("refuses an unusable option: %s", (field, options) => {
    const given = { transport: "smtp://u:p4ss@127.0.0.1", from: FROM, to: TO, ...options };
    let refusal: unknown;
    try {
      smtpNotifier(given as SmtpNotifierOptions);
    } catch (error) {
      refusal = error;
    }
    expect(refusal).toMatchObject({ code: "invalid_option", field });
    expect(String(refusal)).not.toContain("p4ss");
  });
});
