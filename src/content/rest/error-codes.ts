/** The statuses of errors and their codes, for OpenAPI. */

import { componentRef, describeErrorResponse } from "../../http/openapi-document.js";
import type { JsonObject } from "../../schema/types.js";

/** Codes that come with 401 for an anonymous caller and with 403 for a known one. */
const REFUSALS: readonly string[] = [
  "block_cannot_read",
  "rest_block_type_cannot_view",
  "rest_cannot_assign_sticky",
  "rest_cannot_assign_term",
  "rest_cannot_create",
  "rest_cannot_delete",
  "rest_cannot_edit",
  "rest_cannot_edit_image",
  "rest_cannot_edit_others",
  "rest_cannot_manage_templates",
  "rest_cannot_publish",
  "rest_cannot_read",
  "rest_cannot_read_status",
  "rest_cannot_read_type",
  "rest_cannot_update",
  "rest_cannot_view",
  "rest_cannot_view_active_theme",
  "rest_cannot_view_themes",
  "rest_cannot_view_url_details",
  "rest_forbidden",
  "rest_forbidden_context",
  "rest_forbidden_orderby",
  "rest_forbidden_who",
  "rest_post_incorrect_password",
  "rest_user_cannot_view",
];

const STATUSES: { readonly [status: number]: { readonly text: string; readonly codes: readonly string[] } } =
  {
    400: {
      text: "The request cannot be used.",
      codes: [
        "duplicate_term_slug",
        "empty_content",
        "empty_term_name",
        "invalid_menu_id",
        "menu_exists",
        "parse_path_failed",
        "rest_additional_properties_forbidden",
        "rest_batch_not_allowed",
        "rest_callback_disabled",
        "rest_callback_invalid",
        "rest_cannot_edit_file_type",
        "rest_duplicate_items",
        "rest_image_crop_failed",
        "rest_image_not_edited",
        "rest_image_rotation_failed",
        "rest_image_too_large",
        "rest_image_too_slow",
        "rest_image_unreadable",
        "rest_invalid_author",
        "rest_invalid_date",
        "rest_invalid_email",
        "rest_invalid_field",
        "rest_invalid_hex_color",
        "rest_invalid_ip",
        "rest_invalid_json",
        "rest_invalid_multipart",
        "rest_invalid_param",
        "rest_invalid_query",
        "rest_invalid_stored_value",
        "rest_invalid_type",
        "rest_invalid_uuid",
        "rest_missing_callback_param",
        "rest_nested_too_deep",
        "rest_no_matching_schema",
        "rest_no_search_term_defined",
        "rest_not_in_enum",
        "rest_one_of_multiple_matches",
        "rest_orderby_include_missing_include",
        "rest_out_of_bounds",
        "rest_post_exists",
        "rest_post_invalid_id",
        "rest_post_invalid_page_number",
        "rest_post_invalid_type",
        "rest_property_required",
        "rest_request_aborted",
        "rest_revision_invalid_offset_number",
        "rest_revision_invalid_page_number",
        "rest_search_invalid_page_number",
        "rest_taxonomy_not_hierarchical",
        "rest_term_invalid",
        "rest_term_invalid_id",
        "rest_title_required",
        "rest_too_few_items",
        "rest_too_long",
        "rest_too_many_items",
        "rest_too_many_properties",
        "rest_too_short",
        "rest_upload_image_too_large",
        "rest_upload_invalid_disposition",
        "rest_upload_no_content_disposition",
        "rest_upload_no_content_type",
        "rest_upload_no_data",
        "rest_upload_sideload_error",
        "rest_url_required",
        "rest_user_invalid_argument",
        "term_exists",
      ],
    },
    401: {
      text: "Somebody who is known could do it, or the credentials are not accepted.",
      codes: [...REFUSALS, "rest_not_authenticated", "rest_not_logged_in"],
    },
    403: {
      text: "The caller may not do it, or the credentials are stale.",
      codes: [...REFUSALS, "rest_cookie_invalid_nonce"],
    },
    404: {
      text: "There is no such thing here.",
      codes: [
        "block_invalid",
        "no_content",
        "no_response",
        "oembed_invalid_url",
        "rest_block_type_invalid",
        "rest_invalid_namespace",
        "rest_menu_location_invalid",
        "rest_no_route",
        "rest_post_invalid_id",
        "rest_post_invalid_parent",
        "rest_post_no_autosave",
        "rest_revision_parent_id_mismatch",
        "rest_status_invalid",
        "rest_taxonomy_invalid",
        "rest_term_invalid",
        "rest_theme_not_found",
        "rest_type_invalid",
        "rest_unknown_attachment",
        "rest_user_invalid_id",
      ],
    },
    408: { text: "The body did not arrive in time.", codes: ["rest_request_timeout"] },
    410: { text: "It is in the trash already.", codes: ["rest_already_trashed"] },
    412: {
      text: "The item was changed since then, or the file is not the one that was announced.",
      codes: ["rest_precondition_failed", "rest_upload_hash_mismatch"],
    },
    413: {
      text: "The body, a text in it, the file or what would be answered is too large.",
      codes: [
        "rest_body_too_large",
        "rest_response_too_large",
        "rest_text_too_large",
        "rest_too_much_text",
        "rest_upload_file_too_big",
      ],
    },
    415: { text: "The body is compressed.", codes: ["rest_unsupported_media_type"] },
    429: {
      text: "Too many requests of this kind were sent.",
      codes: ["rest_too_many_embeds", "rest_too_many_passwords"],
    },
    500: { text: "The request could not be answered.", codes: ["rest_internal_error"] },
    501: {
      text: "The site does not do this.",
      codes: ["rest_image_editing_unavailable", "rest_trash_not_supported", "rest_upload_unavailable"],
    },
    503: {
      text: "The service cannot answer at the moment.",
      codes: [
        "rest_block_unavailable",
        "rest_busy",
        "rest_image_busy",
        "rest_settings_unavailable",
        "rest_storage_full",
        "rest_storage_unavailable",
        "rest_users_unavailable",
      ],
    },
  };

export function errorResponse(status: number): JsonObject {
  const { text = "", codes = [] } = STATUSES[status] ?? {};

  const isTemporary = status === 429 || status === 503;
  return describeErrorResponse({
    description: text,
    headers: {
      Allow: componentRef("headers", "Allow"),
      Link: componentRef("headers", "Link"),
      ...(isTemporary ? { "Retry-After": componentRef("headers", "Retry-After") } : {}),
    },
    properties: { code: { enum: codes }, message: {}, data: {}, additional_errors: {} },
    example: { code: codes[0] ?? "", message: text, data: { status } },
  });
}

/** A refusal by the host's `authenticate`, whose codes the host chooses. */
export const refusedResponse: JsonObject = describeErrorResponse({
  description: "The site does not accept the credentials, for a reason of its own.",
  headers: { Link: componentRef("headers", "Link") },
  properties: {},
  example: { code: "account_locked", message: "This account is locked.", data: { status: 423 } },
});

export const ERROR_STATUSES: readonly number[] = Object.keys(STATUSES).map(Number);
