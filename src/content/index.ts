/**
 * `postbell/content`: the content service, and what else a host needs to serve the clients of
 * WordPress.
 *
 * @module postbell/content
 */

export type { RoleOptions } from "./auth/roles.js";
export type {
  ApplicationPasswordInput,
  ApplicationPasswords,
  AuthenticateContent,
  AuthenticationRefusal,
} from "./callers.js";
export type {
  ApplicationPasswordOptions,
  ContentCorsOptions,
  ContentLimits,
  ContentOptions,
  EmbedOptions,
  TaxonomyOptions,
  TypeOptions,
} from "./content-options.js";
export type {
  BlockPattern,
  BlockPatternCategory,
  BlockPreview,
  BlockType,
  EditorOptions,
  EditorTheme,
  RenderBlock,
} from "./editor/editor-options.js";
export type { ThemeSupports } from "./editor/theme-supports.js";
export type { EmbedProvider } from "./embeds/providers.js";
export type { FileStore } from "./files.js";
export { createApplicationPasswords } from "./hosting/application-passwords.js";
export { type DiscoveryLinks, type DiscoveryOptions, discoveryLinks } from "./hosting/discovery-links.js";
export { createNonces, type NonceOptions, type Nonces } from "./hosting/nonces.js";
export { rewriteRestRoute } from "./hosting/rest-route.js";
export type { ImageTool } from "./media/image-tool.js";
export type { MenuLocationsOptions } from "./menu-locations/menu-locations.js";
export type { MetaKey, MetaOptions } from "./posts/declared-meta.js";
export type { TypeFeature } from "./records/content-model.js";
export type { ContentChanged } from "./records/record-changes.js";
export type {
  BuiltInPostType,
  ImageMetadata,
  MediaFile,
  MenuItem,
  Post,
  PostColumns,
  PostStatus,
  PostType,
  User,
} from "./records/records.js";
export type { RenderShortCode, ShortCodeContext, ShortCodes } from "./rendering/run-short-codes.js";
export type { ApplicationPassword } from "./repository/small-records.js";
export {
  type Content,
  type ContentPreview,
  type ContentRequest,
  type ContentResponse,
  createContent,
} from "./service.js";
export type {
  FixedSetting,
  HostSetting,
  SettingChanges,
  SettingName,
  SettingsOptions,
  SettingValues,
  WritableSetting,
  WriteSettings,
} from "./settings/setting-fields.js";
export type { Render, SiteOptions } from "./site.js";
export type { ContentStorage } from "./store.js";
export type { ShortCodeAttributes } from "./text/short-codes.js";
export type { UserPage, UserSource, UsersOption } from "./users/users.js";
export type { ExportOptions, ExportProgress } from "./wxr/export.js";
export type {
  FileSource,
  ImportCounts,
  ImportedFile,
  ImportOptions,
  ImportProgress,
  ImportSummary,
  ImportWarning,
} from "./wxr/options.js";
