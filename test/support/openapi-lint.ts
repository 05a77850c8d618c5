/**
 * Two opinions on an OpenAPI document: Redocly's recommended rules, and the schema of the
 * specification.
 */

import { BaseResolver, createConfig, lintDocument, makeDocumentFromString } from "@redocly/openapi-core";
import { Validator } from "@seriousme/openapi-schema-validator";
import type { JsonObject } from "../../src/schema/types.js";

/** Nothing may be fetched. */
const externalRefResolver = new BaseResolver({
  http: {
    headers: [],
    customFetch: () => Promise.reject(new Error("A linter that asks the network is refused.")),
  },
});

/** A rule and the place where it does not fit. */
const EXCUSED = [
  // Everybody may read these documents at any time: no request for them is refused.
  /^warn operation-4xx-response: .*(?:openapi|jwks)\.json\/get\/responses\)$/,
  // WordPress's own schema of the edits of an image, which the argument is read by: it does not
  // require the `type` that tells them apart.
  /^warn no-illogical-composition-keywords: .*`(?:Flip|Rotation)` and `(?:Rotation|Crop)`/,
];

/** Errors and warnings of both. */
export async function objectionsTo(document: JsonObject): Promise<readonly string[]> {
  const config = await createConfig(
    {
      extends: ["recommended"],
      rules: {
        // The interface is the host's, and so is the word on who may use it, and how.
        "info-license": "off",
      },
    },
    { externalRefResolver },
  );
  // The linter reads places in the text, and marks what it visits.
  const text = JSON.stringify(document, null, 1);
  const problems = await lintDocument({
    document: makeDocumentFromString(text, "openapi.json"),
    externalRefResolver,
    config,
  });
  const linted = problems
    .map(
      ({ ruleId, severity, message, location }) =>
        `${severity} ${ruleId}: ${message} (${location.map(({ pointer }) => pointer).join(", ")})`,
    )
    .filter((problem) => !EXCUSED.some((excused) => excused.test(problem)));
  const { errors } = await new Validator().validate(JSON.parse(text) as { [name: string]: unknown });
  return errors === undefined ? linted : [...linted, JSON.stringify(errors)];
}
