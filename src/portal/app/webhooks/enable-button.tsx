/** The button that enables a webhook, and what disabled actions say until then. */

import { ActionButton } from "../components/button.js";
import { usePage } from "../page-context.js";
import { updateWebhook } from "./calls.js";
import type { TabProps } from "./tab.js";

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
