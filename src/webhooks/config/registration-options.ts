/** The options of `createWebhooks` for the settings of endpoints. */

/**
 * The settings that a registration may have besides the URL and the event types, in-process and
 * over REST. A stored setting stays in effect when its option is turned off.
 *
 * @example
 * // Endpoints get the events that they ask for, with the API keys that they need.
 * registrations: { filters: true, headers: true }
 */
export interface RegistrationOptions {
  /**
   * A `filter`: conditions on the `data` of plain events. Default false. Turn it on if subscribers
   * drop most of what they get. Events that no webhook filters cost nothing more; each filter of
   * the account is tested for each of its events.
   */
  filters?: boolean | undefined;
  /**
   * Secret `headers` of an endpoint, for receivers that want an API key. Default false. They are
   * sealed with `sealKeys` of the storage, and no call returns them. Turn it on together with
   * `sealKeys`.
   */
  headers?: boolean | undefined;
  /**
   * `per_second` over REST: a rate of the endpoint in place of `delivery.perSecond`. Default false:
   * only the host sets it, as `perSecond` of `registrations.create` and `update`. Turn it on if
   * subscribers know best what their endpoints bear.
   */
  perSecond?: boolean | undefined;
}
