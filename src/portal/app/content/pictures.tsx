/** Chooses a picture of the media library, for the text of a post or as its featured picture. */

import { useEffect, useRef, useState } from "preact/hooks";
import type { ContentResponseJson, RecordJson } from "../../content-shapes.js";
import { ErrorMessage, getMessage, Loading } from "../components/small.js";
import { useLeaveSignal, usePage } from "../page-context.js";
import { texts } from "../texts.js";
import { useResource } from "../use-resource.js";
import { sendFile } from "./media.js";
import { getPicture, getTitle } from "./records.js";

const FIELDS = "id,title,alt_text,source_url,mime_type,media_details";
const PER_PAGE = 24;
const SEARCH_LENGTH = 200;

interface PickerProps {
  onChoose: (picture: RecordJson) => void;
  onClose: () => void;
}

/** The newest pictures of the library, or those that a search finds. A file that is chosen is uploaded. */
function PictureDialog({ onChoose, onClose }: PickerProps) {
  const { api } = usePage();
  const left = useLeaveSignal();
  const dialog = useRef<HTMLDialogElement>(null);
  const [search, setSearch] = useState("");
  const [isUploading, setUploading] = useState(false);
  const [problem, setProblem] = useState("");
  useEffect(() => dialog.current?.showModal(), []);
  /** Closes the dialog first, so that the focus returns to the button. */
  const choose = (picture: RecordJson): void => {
    dialog.current?.close();
    onChoose(picture);
  };
  const { data, error } = useResource(
    (reader) =>
      reader.get<ContentResponseJson<RecordJson[]>>("content/media", {
        media_type: "image",
        search: search.trim() || undefined,
        per_page: PER_PAGE,
        _fields: FIELDS,
      }),
    [search.trim()],
  );
  const upload = async (input: HTMLInputElement): Promise<void> => {
    const [file] = input.files ?? [];
    if (file === undefined || isUploading) return;
    setUploading(true);
    setProblem("");
    try {
      const picture = await sendFile(file, api, left, () => {});
      if (!left.aborted) choose(picture);
    } catch (error) {
      if (!left.aborted) setProblem(getMessage(error));
    } finally {
      input.value = "";
      setUploading(false);
    }
  };
  const pictures = data?.body ?? [];
  return (
    <dialog ref={dialog} class="pictures" aria-labelledby="pictures-title" onClose={onClose}>
      <h2 id="pictures-title">{texts.media.choose}</h2>
      <div class="row">
        <input
          type="search"
          aria-label={texts.media.searchLabel}
          placeholder={texts.media.searchPlaceholder}
          maxLength={SEARCH_LENGTH}
          value={search}
          onInput={(event) => setSearch(event.currentTarget.value)}
        />
        <label class="button">
          {isUploading ? texts.media.uploading : texts.media.uploadOne}
          <input
            type="file"
            class="unseen"
            accept="image/*"
            onChange={(event) => void upload(event.currentTarget)}
          />
        </label>
      </div>
      <p role="alert" class="problem">
        {problem}
      </p>
      {error !== undefined && <ErrorMessage error={error} />}
      {data === undefined && error === undefined && <Loading />}
      {data !== undefined && pictures.length === 0 && (
        <p class="empty">{search.trim() === "" ? texts.media.noneYet : texts.media.noneFound}</p>
      )}
      <ul class="media">
        {pictures.map((picture) => (
          <li key={picture.id}>
            <button type="button" class="bare" onClick={() => choose(picture)}>
              <img src={api.url(getPicture(picture, "thumbnail") ?? "")} alt="" loading="lazy" />
              <span class="address">{getTitle(picture)}</span>
            </button>
          </li>
        ))}
      </ul>
      <button type="button" class="plain" onClick={() => dialog.current?.close()}>
        {texts.common.cancel}
      </button>
    </dialog>
  );
}

/** A button that asks for a picture. */
export function PictureButton({
  label,
  onChoose,
}: {
  label: string;
  onChoose: (picture: RecordJson) => void;
}) {
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <button type="button" class="plain" aria-haspopup="dialog" onClick={() => setOpen(true)}>
        {label}
      </button>
      {isOpen && <PictureDialog onClose={() => setOpen(false)} onChoose={onChoose} />}
    </>
  );
}

/** The featured picture of a post. `value`: the id of the file, `0` or empty without one. */
export function FeaturedPicture({ value, onChange }: { value: string; onChange: (id: string) => void }) {
  const { api } = usePage();
  const hasPicture = value !== "" && value !== "0";
  const { data } = useResource(
    async (reader) =>
      hasPicture
        ? (await reader.get<ContentResponseJson<RecordJson>>(`content/media/${value}`, { _fields: FIELDS }))
            .body
        : null,
    [value],
  );
  const section = useRef<HTMLElement>(null);
  const picture = data === undefined || data === null ? undefined : getPicture(data, "thumbnail");
  return (
    <section class="field featured" aria-label={texts.content.fields.featured_media} ref={section}>
      <h2>{texts.content.fields.featured_media}</h2>
      {picture !== undefined && <img src={api.url(picture)} alt={data?.alt_text || texts.media.withoutAlt} />}
      <p class="row">
        <PictureButton
          label={hasPicture ? texts.media.another : texts.media.chooseFeatured}
          onChoose={({ id }) => onChange(String(id))}
        />
        {hasPicture && (
          <button
            type="button"
            class="plain"
            onClick={() => {
              // This button goes.
              section.current?.querySelector("button")?.focus();
              onChange("0");
            }}
          >
            {texts.media.remove}
          </button>
        )}
      </p>
    </section>
  );
}
