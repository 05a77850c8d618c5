/** The properties that the tabs of a webhook share. */

import type { WebhookWithStatsJson } from "../../shapes.js";

export interface TabProps {
  readonly webhook: WebhookWithStatsJson;
  /** Reads the webhook again, after it was changed. */
  readonly reload: () => Promise<void>;
}
