/** Actions of several views of a webhook: enabling it, and finishing a rotation of its secret. */

import type { WebhookWithStatsJson } from "../../shapes.js";
import { ActionButton, useConfirmation } from "../components/button.js";
import { usePage } from "../page-context.js";
import { formatTime, nameZone } from "../times.js";
import { updateWebhook, webhookPath } from "./calls.js";

export function RotationNotice({ webhook: { id, stats }, reload }: TabProps) {
  const { api, say, zone } = usePage();
  const [ask, question] = useConfirmation();
  if (stats.rotatesAt === null) return null;
  const finish = async (): Promise<void> => {
    const isConfirmed = await ask({
      title: "Sign with the new secret now?",
      explanation:
        "From then on the old secret signs nothing. An endpoint without the new secret refuses every delivery.",
      confirm: "Sign with the new secret now",
    });
    if (!isConfirmed) return;
    await api.send("POST", `${webhookPath(id)}/rotate/finish`);
    await reload();
    say("The new secret signs from now on. You may remove the old one from your endpoint.");
  };
  return (
    <section class="notice" aria-label="Rotation of the secret">
      <h2>
        Rotation pending until {formatTime(stats.rotatesAt, zone)} {nameZone(zone)}
      </h2>
      <p>
        Your endpoint must accept both secrets until then. The signature header is still made with the old
        secret. <code>webhook-signature</code>, if the service sends it, lists a signature of each.
      </p>
      <ActionButton act={finish}>Sign with the new secret now</ActionButton>
      {question}
    </section>
  );
}

export const DISABLED_REASON = "The webhook is disabled: enable it first.";

/** Enables a webhook that is disabled. */
export function EnableButton({ webhook, reload }: TabProps) {
  const { api, say } = usePage();
  const enable = async (): Promise<void> => {
    await updateWebhook(api, webhook.id, { status: "ENABLED" });
    await reload();
    say("The webhook was enabled. Send a test, then retry what it missed, under Deliveries.");
  };
  return (
    <ActionButton kind="primary" act={enable}>
      Enable
    </ActionButton>
  );
}

export interface TabProps {
  readonly webhook: WebhookWithStatsJson;
  /** Reads the webhook again, after it was changed. */
  readonly reload: () => Promise<void>;
}
