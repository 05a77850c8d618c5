/** Finds out why a signature does not match, by trying the usual mistakes. Pure. */

import { verifySignature } from "../../src/signature/signature.js";

interface SignedBody {
  readonly body: Uint8Array;
  readonly header: string | undefined;
  readonly secrets: readonly string[];
  readonly now: number;
}

/** A body or secrets as they would be without the mistake. */
interface Correction {
  readonly body?: string | undefined;
  readonly secrets?: readonly string[];
}

interface Mistake {
  /** `text` has one character for each byte of the body. */
  readonly correct: (text: string, secrets: readonly string[]) => readonly Correction[];
  readonly advice: string;
}

const MISTAKES: readonly Mistake[] = [
  {
    correct: (text) => [{ body: text.replace(/\r?\n$/, "") }],
    advice: "A line end was added at the end of the body: it is not part of it.",
  },
  {
    correct: (text) => [{ body: `${text}\n` }, { body: `${text}\r\n` }],
    advice: "The line end at the end of the body is missing: it is part of it.",
  },
  {
    correct: (text) => [{ body: text.replaceAll("\r\n", "\n") }, { body: text.replace(/\r?\n/g, "\r\n") }],
    advice: "The line ends of the body were changed.",
  },
  {
    correct: (text) => [{ body: text.replace(/^\xef\xbb\xbf/, "") }],
    advice: "A byte order mark was added before the body.",
  },
  {
    correct: (text) => [{ body: reserialise(text) }],
    advice:
      "The body was parsed and written again: sign and verify the received bytes, before any body parser.",
  },
  {
    correct: (_, secrets) => [
      { secrets: secrets.map((secret) => secret.trim().replace(/^["']|["']$/g, "")) },
    ],
    advice: "The secret has spaces, a line end or quotation marks around it.",
  },
  {
    correct: (_, secrets) => [{ secrets: secrets.map((secret) => `whsec_${secret}`) }],
    advice: "The secret lacks its beginning: whsec_ is part of it.",
  },
  {
    correct: (_, secrets) => [{ secrets: secrets.map((secret) => secret.replace(/^whsec_/, "")) }],
    advice: "The sender signs with the secret without whsec_; Postbell signs with the complete secret.",
  },
];

const UNKNOWN =
  "Either the secret belongs to another webhook or was rotated, or the body is not, byte for byte, the one that was sent.";

export function explainMismatch({ body, header, secrets, now }: SignedBody): string {
  const text = Buffer.from(body).toString("latin1");
  const isMatch = ({ body: changed, secrets: keys = secrets }: Correction): boolean => {
    const usable = keys.filter((key) => key !== "" && key !== "whsec_");
    return (
      usable.length > 0 &&
      verifySignature({
        body: changed === undefined ? body : Buffer.from(changed, "latin1"),
        ...{ header, secrets: usable, toleranceSeconds: Number.MAX_VALUE, now },
      }).ok
    );
  };
  const mistake = MISTAKES.find(({ correct }) => correct(text, secrets).some(isMatch));
  return `The signature does not match this body and secret. ${mistake?.advice ?? UNKNOWN}`;
}

/** Returns the JSON as `JSON.stringify` writes it; empty if the text is not JSON. */
function reserialise(text: string): string {
  try {
    const json = JSON.stringify(JSON.parse(Buffer.from(text, "latin1").toString()));
    return Buffer.from(json).toString("latin1");
  } catch {
    return "";
  }
}
