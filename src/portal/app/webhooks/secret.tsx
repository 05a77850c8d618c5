/** A new secret, shown once, beside the code that verifies signatures with it. */

import { snippets } from "virtual:verification-snippets";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { CodeBlock, CopyButton } from "../components/small.js";

/** Code that verifies a signature, in the language that the visitor chooses. */
export function VerificationSnippet() {
  const [language, setLanguage] = useState(snippets[0]?.language);
  const id = useId();
  const shown = snippets.find((snippet) => snippet.language === language);
  return (
    <div>
      <div class="row">
        <div class="field">
          <label for={id}>Verify signatures in</label>
          <select id={id} value={language} onChange={(event) => setLanguage(event.currentTarget.value)}>
            {snippets.map(({ language: name }) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </div>
      </div>
      <p class="quiet">
        The program reads the raw body from standard input, the signature header from <code>SIGNATURE</code>,
        and the secret from <code>WEBHOOK_SECRET</code>. Use its function in your handler.
      </p>
      {shown !== undefined && <CodeBlock text={shown.code} label="code" />}
    </div>
  );
}

export function SecretPanel({ secret, rotatesAt }: { readonly secret: string; readonly rotatesAt?: string }) {
  const id = useId();
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => input.current?.focus(), []);
  return (
    <section class="panel" aria-label="The new secret">
      <label for={id}>Signing secret</label>
      <div class="copy-row">
        <input
          id={id}
          ref={input}
          class="wide code"
          readOnly
          value={secret}
          spellcheck={false}
          onFocus={(event) => event.currentTarget.select()}
        />
        <CopyButton text={secret} label="secret" />
      </div>
      <p>
        <strong>Copy it now: it is shown only once.</strong>{" "}
        {rotatesAt === undefined
          ? "Store it where your endpoint reads its secrets."
          : "Add it to your endpoint beside the old secret. Do not remove the old one yet."}
      </p>
      <VerificationSnippet />
    </section>
  );
}
