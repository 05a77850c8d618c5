/** `postbell/smtp`: sends mails, for the option `notify` of `createWebhooks`. */

export type { Mail, MailFacts } from "./mail.js";
export type { MailTemplates, Recipients, SmtpNotifierOptions, Transporter } from "./options.js";
export { type SmtpNotifier, smtpNotifier } from "./smtp-notifier.js";
