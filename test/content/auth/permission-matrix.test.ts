/** Who may do what: one table for every route and method of the service. */

import { beforeAll, describe, expect, it } from "vitest";
import type { Post, PostStatus, PostType } from "../../../src/content/records/records.js";
import type { Json, JsonObject } from "../../../src/schema/types.js";
import { manualClock } from "../../../src/testing/manual-clock.js";
import { memoryStorage } from "../../../storage/memory/index.js";
import { callsOf } from "../../support/content-call.js";
import { seedsIn } from "../../support/content-seeds.js";
import { contentSite, credentials, idOf, ROLES, type Role } from "../../support/content-site.js";

const NOON = Date.UTC(2026, 10, 21, 12);
const COLUMNS = ["anonymous", "subscriber", "contributor", "author", "editor", "administrator"] as const;
type Column = (typeof COLUMNS)[number];

/**
 * Methods, path with query, body, whose record it is, the statuses it may have, and what each role
 * is answered; `-`: does not apply. A record of somebody else's belongs to an administrator, to an
 * editor where an administrator asks. `page>draft`: a file that belongs to a page in that status.
 */
const TABLE = `
GET             /                           {} - -  200 200 200 200 200 200
GET             /core/v2                    {} - -  200 200 200 200 200 200
GET             /oembed/1.0                 {} - -  200 200 200 200 200 200
POST            /batch/v1                   {"requests":[]} - -  207 207 207 207 207 207

GET             /core/v2/posts              {} - -  200 200 200 200 200 200
GET             /core/v2/posts?context=edit {} - -  401 403 200 200 200 200
GET             /core/v2/posts?status=draft {} - -  400 400 200 200 200 200
GET             /core/v2/posts?status=trash {} - -  400 400 200 200 200 200
GET             /core/v2/posts?status=private {} - -  400 400 200 200 200 200
GET             /core/v2/posts?status=any   {} - -  400 400 200 200 200 200
POST            /core/v2/posts              {"title":"a"} - -  401 403 201 201 201 201
POST            /core/v2/posts              {"title":"a","status":"pending"} - -  401 403 201 201 201 201
POST            /core/v2/posts              {"title":"a","status":"publish"} - -  401 403 403 201 201 201
POST            /core/v2/posts              {"title":"a","status":"future","date":"2099-01-01T00:00:00"} - -  401 403 403 201 201 201
POST            /core/v2/posts              {"title":"a","status":"private"} - -  401 403 403 201 201 201
POST            /core/v2/posts              {"title":"a","author":1} - -  401 403 403 403 201 201
POST            /core/v2/posts              {"title":"a","sticky":true} - -  401 403 403 201 201 201
GET             /core/v2/posts/:id          {} other publish,protected              200 200 200 200 200 200
GET             /core/v2/posts/:id          {} other future,draft,pending,private,trash  401 403 403 403 200 200
GET             /core/v2/posts/:id          {} own   publish,protected,future,draft,pending,private,trash  - 200 200 200 200 200
GET             /core/v2/posts/:id?context=edit  {} other publish,protected,future,draft,pending,private,trash  401 403 403 403 200 200
GET             /core/v2/posts/:id?context=edit  {} own   publish,protected,future  - 403 403 200 200 200
GET             /core/v2/posts/:id?context=edit  {} own   draft,pending,private,trash  - 403 200 200 200 200
POST,PUT,PATCH  /core/v2/posts/:id          {"title":"b"} other publish,protected,future,draft,pending,private,trash  401 403 403 403 200 200
POST,PUT,PATCH  /core/v2/posts/:id          {"title":"b"} own   publish,protected,future  - 403 403 200 200 200
POST,PUT,PATCH  /core/v2/posts/:id          {"title":"b"} own   draft,pending,private,trash  - 403 200 200 200 200
POST,PUT,PATCH  /core/v2/posts/:id          {"status":"publish"} own   draft,pending,private  - 403 403 200 200 200
POST,PUT,PATCH  /core/v2/posts/:id          {"author":1} own   draft                - 403 403 403 200 200
POST,PUT,PATCH  /core/v2/posts/:id          {"sticky":true} own   draft             - 403 403 200 200 200
DELETE          /core/v2/posts/:id          {} other publish,protected,future,draft,pending,private  401 403 403 403 200 200
DELETE          /core/v2/posts/:id          {} other trash                          401 403 403 403 410 410
DELETE          /core/v2/posts/:id          {} own   publish,protected,future       - 403 403 200 200 200
DELETE          /core/v2/posts/:id          {} own   draft,pending,private          - 403 200 200 200 200
DELETE          /core/v2/posts/:id?force=true  {} other publish,protected,future,draft,pending,private,trash  401 403 403 403 200 200
DELETE          /core/v2/posts/:id?force=true  {} own   publish,protected,future    - 403 403 200 200 200
DELETE          /core/v2/posts/:id?force=true  {} own   draft,pending,private,trash  - 403 200 200 200 200

GET             /core/v2/pages              {} - -  200 200 200 200 200 200
GET             /core/v2/pages?context=edit {} - -  401 403 403 403 200 200
GET             /core/v2/pages?status=draft {} - -  400 400 400 400 200 200
POST            /core/v2/pages              {"title":"a"} - -  401 403 403 403 201 201
POST            /core/v2/pages              {"title":"a","status":"publish"} - -  401 403 403 403 201 201
GET             /core/v2/pages/:id          {} other publish,protected              200 200 200 200 200 200
GET             /core/v2/pages/:id          {} other future,draft,pending,private,trash  401 403 403 403 200 200
GET             /core/v2/pages/:id          {} own   publish,protected,future,draft,pending,private,trash  - 200 200 200 200 200
GET             /core/v2/pages/:id?context=edit  {} other publish,protected,future,draft,pending,private,trash  401 403 403 403 200 200
GET             /core/v2/pages/:id?context=edit  {} own   publish,protected,future,draft,pending,private,trash  - 403 403 403 200 200
POST,PUT,PATCH  /core/v2/pages/:id          {"title":"b"} other publish,protected,future,draft,pending,private,trash  401 403 403 403 200 200
POST,PUT,PATCH  /core/v2/pages/:id          {"title":"b"} own   publish,draft,pending,private  - 403 403 403 200 200
DELETE          /core/v2/pages/:id          {} other publish,protected,future,draft,pending,private  401 403 403 403 200 200
DELETE          /core/v2/pages/:id          {} own   publish,draft,private          - 403 403 403 200 200
DELETE          /core/v2/pages/:id?force=true  {} other publish,draft,private,trash  401 403 403 403 200 200
DELETE          /core/v2/pages/:id?force=true  {} own   publish,draft,private,trash  - 403 403 403 200 200

GET             /core/v2/media              {} - -  200 200 200 200 200 200
GET             /core/v2/media?context=edit {} - -  401 403 200 200 200 200
GET             /core/v2/media?status=trash {} - -  400 400 200 200 200 200
GET             /core/v2/media?status=private {} - -  400 400 200 200 200 200
GET             /core/v2/media/:id          {} other inherit,page>publish           200 200 200 200 200 200
GET             /core/v2/media/:id          {} other page>draft,page>private,page>trash,private  401 403 403 403 200 200
GET             /core/v2/media/:id          {} own   inherit,page>publish,page>draft,page>private,private  - 200 200 200 200 200
GET             /core/v2/media/:id?context=edit  {} other inherit,page>draft,private  401 403 403 403 200 200
GET             /core/v2/media/:id?context=edit  {} own   inherit,page>draft,private  - 403 200 200 200 200
POST,PUT,PATCH  /core/v2/media/:id          {"title":"b"} other inherit,page>draft,private  401 403 403 403 200 200
POST,PUT,PATCH  /core/v2/media/:id          {"title":"b"} own   inherit,page>draft,private  - 403 200 200 200 200
POST,PUT,PATCH  /core/v2/media/:id          {"author":1} own    inherit             - 403 403 403 200 200
DELETE          /core/v2/media/:id          {} other inherit,page>draft,private     401 403 403 403 501 501
DELETE          /core/v2/media/:id?force=true  {} other inherit,page>draft,private  401 403 403 403 200 200
DELETE          /core/v2/media/:id?force=true  {} own   inherit,page>draft,private  - 403 200 200 200 200

GET             /core/v2/blocks             {} - -  200 200 200 200 200 200
GET             /core/v2/blocks?context=edit {} - -  401 403 200 200 200 200
GET             /core/v2/blocks?status=draft {} - -  400 400 200 200 200 200
POST            /core/v2/blocks             {"title":"a"} - -  401 403 403 201 201 201
POST            /core/v2/blocks             {"title":"a","status":"publish"} - -  401 403 403 201 201 201
GET             /core/v2/blocks/:id         {} other publish                        401 403 200 200 200 200
GET             /core/v2/blocks/:id         {} other draft,pending,trash            401 403 403 403 200 200
GET             /core/v2/blocks/:id         {} other private                        401 403 403 403 403 403
GET             /core/v2/blocks/:id         {} own   publish,draft,pending,private,trash  - 403 200 200 200 200
GET             /core/v2/blocks/:id?context=edit  {} other publish,draft,trash      401 403 403 403 200 200
GET             /core/v2/blocks/:id?context=edit  {} other private                  401 403 403 403 403 403
GET             /core/v2/blocks/:id?context=edit  {} own   draft,private            - 403 200 200 200 200
POST,PUT,PATCH  /core/v2/blocks/:id         {"title":"b"} other publish,draft       401 403 403 403 200 200
POST,PUT,PATCH  /core/v2/blocks/:id         {"title":"b"} other private             401 403 403 403 403 403
POST,PUT,PATCH  /core/v2/blocks/:id         {"title":"b"} own   publish             - 403 403 200 200 200
POST,PUT,PATCH  /core/v2/blocks/:id         {"title":"b"} own   draft,private       - 403 200 200 200 200
DELETE          /core/v2/blocks/:id         {} other publish,draft                  401 403 403 403 200 200
DELETE          /core/v2/blocks/:id?force=true  {} other private                    401 403 403 403 403 403
DELETE          /core/v2/blocks/:id?force=true  {} own   publish                    - 403 403 200 200 200
DELETE          /core/v2/blocks/:id?force=true  {} own   draft,private              - 403 200 200 200 200

GET             /core/v2/menu-items         {} - -  401 403 200 200 200 200
GET             /core/v2/menu-items?context=edit {} - -  401 403 403 403 403 200
GET             /core/v2/menu-items?status=draft {} - -  400 400 400 400 400 200
POST            /core/v2/menu-items         {"title":"a","url":"/"} - -  401 403 403 403 403 201
GET             /core/v2/menu-items/:id     {} other publish                        401 403 200 200 200 200
GET             /core/v2/menu-items/:id     {} other draft                          401 403 403 403 403 200
GET             /core/v2/menu-items/:id?context=edit  {} other publish,draft        401 403 403 403 403 200
POST,PUT,PATCH  /core/v2/menu-items/:id     {"title":"b"} other publish,draft       401 403 403 403 403 200
POST,PUT,PATCH  /core/v2/menu-items/:id     {"title":"b"} own   publish,draft       - 403 403 403 403 200
DELETE          /core/v2/menu-items/:id     {} other publish,draft                  401 403 403 403 403 501
DELETE          /core/v2/menu-items/:id?force=true  {} other publish,draft          401 403 403 403 403 200
DELETE          /core/v2/menu-items/:id?force=true  {} own   publish,draft          - 403 403 403 403 200

GET             /core/v2/navigation         {} - -  200 200 200 200 200 200
GET             /core/v2/navigation?context=edit {} - -  401 403 403 403 403 200
GET             /core/v2/navigation?status=draft {} - -  400 400 400 400 400 200
POST            /core/v2/navigation         {"title":"a"} - -  401 403 403 403 403 201
POST            /core/v2/navigation         {"title":"a","status":"publish"} - -  401 403 403 403 403 201
GET             /core/v2/navigation/:id     {} other publish                        200 200 200 200 200 200
GET             /core/v2/navigation/:id     {} other draft,private,trash            401 403 403 403 403 200
GET             /core/v2/navigation/:id?context=edit  {} other publish,draft        401 403 403 403 403 200
POST,PUT,PATCH  /core/v2/navigation/:id     {"title":"b"} other publish,draft       401 403 403 403 403 200
POST,PUT,PATCH  /core/v2/navigation/:id     {"title":"b"} own   publish,draft       - 403 403 403 403 200
DELETE          /core/v2/navigation/:id     {} other publish,draft                  401 403 403 403 403 200
DELETE          /core/v2/navigation/:id     {} own   publish,draft                  - 403 403 403 403 200
DELETE          /core/v2/navigation/:id?force=true  {} other publish,draft          401 403 403 403 403 200
GET             /core/v2/navigation/:id/revisions  {} other publish,draft  401 403 403 403 403 200
GET             /core/v2/navigation/:id/revisions  {} own publish,draft  - 403 403 403 403 200
GET             /core/v2/navigation/:id/revisions/:rev  {} other publish,draft  401 403 403 403 403 200
DELETE          /core/v2/navigation/:id/revisions/:rev  {} other publish,draft  401 403 403 403 403 501
DELETE          /core/v2/navigation/:id/revisions/:rev?force=true  {} other publish,draft  401 403 403 403 403 200
GET             /core/v2/navigation/:id/autosaves  {} other publish,draft  401 403 403 403 403 200
GET             /core/v2/navigation/:id/autosaves/:auto  {} other publish,draft  401 403 403 403 403 200
POST            /core/v2/navigation/:id/autosaves  {"title":"b"} other publish,draft  401 403 403 403 403 200

GET             /core/v2/posts/:id/revisions  {} other publish,protected,draft,private,trash  401 403 403 403 200 200
GET             /core/v2/posts/:id/revisions  {} own publish  - 403 403 200 200 200
GET             /core/v2/posts/:id/revisions  {} own draft,pending  - 403 200 200 200 200
GET             /core/v2/posts/:id/revisions/:rev  {} other publish,protected,draft,private,trash  401 403 403 403 200 200
GET             /core/v2/posts/:id/revisions/:rev  {} own publish  - 403 403 200 200 200
GET             /core/v2/posts/:id/revisions/:rev  {} own draft,pending  - 403 200 200 200 200
DELETE          /core/v2/posts/:id/revisions/:rev  {} other publish,protected,draft,private,trash  401 403 403 403 501 501
DELETE          /core/v2/posts/:id/revisions/:rev  {} own publish  - 403 403 501 501 501
DELETE          /core/v2/posts/:id/revisions/:rev  {} own draft,pending  - 403 501 501 501 501
DELETE          /core/v2/posts/:id/revisions/:rev?force=true  {} other publish,protected,draft,private,trash  401 403 403 403 200 200
DELETE          /core/v2/posts/:id/revisions/:rev?force=true  {} own publish  - 403 403 200 200 200
DELETE          /core/v2/posts/:id/revisions/:rev?force=true  {} own draft,pending  - 403 200 200 200 200
GET             /core/v2/posts/:id/autosaves  {} other publish,protected,draft,private,trash  401 403 403 403 200 200
GET             /core/v2/posts/:id/autosaves  {} own publish  - 403 403 200 200 200
GET             /core/v2/posts/:id/autosaves  {} own draft,pending  - 403 200 200 200 200
GET             /core/v2/posts/:id/autosaves/:auto  {} other publish,protected,draft,private,trash  401 403 403 403 200 200
GET             /core/v2/posts/:id/autosaves/:auto  {} own publish  - 403 403 200 200 200
GET             /core/v2/posts/:id/autosaves/:auto  {} own draft,pending  - 403 200 200 200 200
POST            /core/v2/posts/:id/autosaves  {"title":"b"} other publish,protected,draft,private,trash  401 403 403 403 200 200
POST            /core/v2/posts/:id/autosaves  {"title":"b"} own publish  - 403 403 200 200 200
POST            /core/v2/posts/:id/autosaves  {"title":"b"} own draft,pending  - 403 200 200 200 200
GET             /core/v2/pages/:id/revisions  {} other publish,protected,draft,private,trash  401 403 403 403 200 200
GET             /core/v2/pages/:id/revisions  {} own publish,draft  - 403 403 403 200 200
GET             /core/v2/pages/:id/revisions/:rev  {} other publish,protected,draft,private,trash  401 403 403 403 200 200
GET             /core/v2/pages/:id/revisions/:rev  {} own publish,draft  - 403 403 403 200 200
DELETE          /core/v2/pages/:id/revisions/:rev  {} other publish,protected,draft,private,trash  401 403 403 403 501 501
DELETE          /core/v2/pages/:id/revisions/:rev  {} own publish,draft  - 403 403 403 501 501
DELETE          /core/v2/pages/:id/revisions/:rev?force=true  {} other publish,protected,draft,private,trash  401 403 403 403 200 200
DELETE          /core/v2/pages/:id/revisions/:rev?force=true  {} own publish,draft  - 403 403 403 200 200
GET             /core/v2/pages/:id/autosaves  {} other publish,protected,draft,private,trash  401 403 403 403 200 200
GET             /core/v2/pages/:id/autosaves  {} own publish,draft  - 403 403 403 200 200
GET             /core/v2/pages/:id/autosaves/:auto  {} other publish,protected,draft,private,trash  401 403 403 403 200 200
GET             /core/v2/pages/:id/autosaves/:auto  {} own publish,draft  - 403 403 403 200 200
POST            /core/v2/pages/:id/autosaves  {"title":"b"} other publish,protected,draft,private,trash  401 403 403 403 200 200
POST            /core/v2/pages/:id/autosaves  {"title":"b"} own publish,draft  - 403 403 403 200 200
GET             /core/v2/blocks/:id/revisions  {} other publish,draft  401 403 403 403 200 200
GET             /core/v2/blocks/:id/revisions  {} own publish  - 403 403 200 200 200
GET             /core/v2/blocks/:id/revisions  {} own draft,private  - 403 200 200 200 200
GET             /core/v2/blocks/:id/revisions/:rev  {} other publish,draft  401 403 403 403 200 200
GET             /core/v2/blocks/:id/revisions/:rev  {} own publish  - 403 403 200 200 200
GET             /core/v2/blocks/:id/revisions/:rev  {} own draft,private  - 403 200 200 200 200
DELETE          /core/v2/blocks/:id/revisions/:rev  {} other publish,draft  401 403 403 403 501 501
DELETE          /core/v2/blocks/:id/revisions/:rev  {} own publish  - 403 403 501 501 501
DELETE          /core/v2/blocks/:id/revisions/:rev  {} own draft,private  - 403 501 501 501 501
DELETE          /core/v2/blocks/:id/revisions/:rev?force=true  {} other publish,draft  401 403 403 403 200 200
DELETE          /core/v2/blocks/:id/revisions/:rev?force=true  {} own publish  - 403 403 200 200 200
DELETE          /core/v2/blocks/:id/revisions/:rev?force=true  {} own draft,private  - 403 200 200 200 200
GET             /core/v2/blocks/:id/autosaves  {} other publish,draft  401 403 403 403 200 200
GET             /core/v2/blocks/:id/autosaves  {} own publish  - 403 403 200 200 200
GET             /core/v2/blocks/:id/autosaves  {} own draft,private  - 403 200 200 200 200
GET             /core/v2/blocks/:id/autosaves/:auto  {} other publish,draft  401 403 403 403 200 200
GET             /core/v2/blocks/:id/autosaves/:auto  {} own publish  - 403 403 200 200 200
GET             /core/v2/blocks/:id/autosaves/:auto  {} own draft,private  - 403 200 200 200 200
POST            /core/v2/blocks/:id/autosaves  {"title":"b"} other publish,draft  401 403 403 403 200 200
POST            /core/v2/blocks/:id/autosaves  {"title":"b"} own publish  - 403 403 200 200 200
POST            /core/v2/blocks/:id/autosaves  {"title":"b"} own draft,private  - 403 200 200 200 200
GET             /core/v2/menu-items/:id/autosaves  {} other publish,draft  401 403 403 403 403 200
GET             /core/v2/menu-items/:id/autosaves  {} own publish,draft  - 403 403 403 403 200
GET             /core/v2/menu-items/:id/autosaves/:auto  {} other publish,draft  401 403 403 403 403 200
GET             /core/v2/menu-items/:id/autosaves/:auto  {} own publish,draft  - 403 403 403 403 200
POST            /core/v2/menu-items/:id/autosaves  {"title":"b"} other publish,draft  401 403 403 403 403 200
POST            /core/v2/menu-items/:id/autosaves  {"title":"b"} own publish,draft  - 403 403 403 403 200

GET             /core/v2/categories              {} - -  200 200 200 200 200 200
GET             /core/v2/categories?context=edit {} - -  401 403 403 403 200 200
POST            /core/v2/categories              {"name":"%"} - -  401 403 403 403 201 201
GET             /core/v2/categories/:term              {} - -  200 200 200 200 200 200
GET             /core/v2/categories/:term?context=edit {} - -  401 403 403 403 200 200
POST,PUT,PATCH  /core/v2/categories/:term              {"name":"%"} - -  401 403 403 403 200 200
DELETE          /core/v2/categories/:term              {} - -  401 403 403 403 501 501
DELETE          /core/v2/categories/:term?force=true   {} - -  401 403 403 403 200 200
GET             /core/v2/tags                    {} - -  200 200 200 200 200 200
GET             /core/v2/tags?context=edit       {} - -  401 403 403 403 200 200
POST            /core/v2/tags                    {"name":"%"} - -  401 403 201 201 201 201
GET             /core/v2/tags/:term                    {} - -  200 200 200 200 200 200
GET             /core/v2/tags/:term?context=edit       {} - -  401 403 403 403 200 200
POST,PUT,PATCH  /core/v2/tags/:term                    {"name":"%"} - -  401 403 403 403 200 200
DELETE          /core/v2/tags/:term                    {} - -  401 403 403 403 501 501
DELETE          /core/v2/tags/:term?force=true         {} - -  401 403 403 403 200 200
GET             /core/v2/wp_pattern_category              {} - -  200 200 200 200 200 200
GET             /core/v2/wp_pattern_category?context=edit {} - -  401 403 403 403 200 200
POST            /core/v2/wp_pattern_category              {"name":"%"} - -  401 403 201 201 201 201
GET             /core/v2/wp_pattern_category/:term              {} - -  200 200 200 200 200 200
GET             /core/v2/wp_pattern_category/:term?context=edit {} - -  401 403 403 403 200 200
POST,PUT,PATCH  /core/v2/wp_pattern_category/:term              {"name":"%"} - -  401 403 403 403 200 200
DELETE          /core/v2/wp_pattern_category/:term              {} - -  401 403 403 403 501 501
DELETE          /core/v2/wp_pattern_category/:term?force=true   {} - -  401 403 403 403 200 200
GET             /core/v2/menus                   {} - -  401 403 200 200 200 200
GET             /core/v2/menus?context=edit      {} - -  401 403 403 403 403 200
POST            /core/v2/menus                   {"name":"%"} - -  401 403 403 403 403 201
GET             /core/v2/menus/:term                   {} - -  401 403 200 200 200 200
GET             /core/v2/menus/:term?context=edit      {} - -  401 403 403 403 403 200
POST,PUT,PATCH  /core/v2/menus/:term                   {"name":"%"} - -  401 403 403 403 403 200
DELETE          /core/v2/menus/:term                   {} - -  401 403 403 403 403 501
DELETE          /core/v2/menus/:term?force=true        {} - -  401 403 403 403 403 200

GET             /core/v2/users                   {} - -  200 200 200 200 200 200
GET             /core/v2/users?context=edit      {} - -  401 403 403 403 403 200
GET             /core/v2/users?roles=editor      {} - -  401 403 403 403 403 200
GET             /core/v2/users?who=authors       {} - -  401 403 200 200 200 200
GET             /core/v2/users/me                {} - -  401 200 200 200 200 200
GET             /core/v2/users/me?context=edit   {} - -  401 200 200 200 200 200
GET             /core/v2/users/1                 {} - -  200 200 200 200 200 200
GET             /core/v2/users/1?context=edit    {} - -  401 403 403 403 403 200
GET             /core/v2/users/9                 {} - -  404 404 404 404 404 200
GET             /core/v2/users/9?context=edit    {} - -  404 404 404 404 404 200
POST,PUT,PATCH  /core/v2/users/me                {} - -  401 200 200 200 200 200
POST,PUT,PATCH  /core/v2/users/1                 {} - -  401 403 403 403 403 200
POST,PUT,PATCH  /core/v2/users/9                 {} - -  401 404 404 404 404 403
GET             /core/v2/search                  {} - -  200 200 200 200 200 200
GET             /core/v2/settings                {} - -  401 403 403 403 403 200
POST,PUT,PATCH  /core/v2/settings                {"title":"%"} - -  401 403 403 403 403 200
GET             /core/v2/menu-locations          {} - -  401 403 403 403 403 200
GET             /core/v2/menu-locations/primary  {} - -  401 403 403 403 403 200
GET             /core/v2/types                   {} - -  200 200 200 200 200 200
GET             /core/v2/types?context=edit      {} - -  401 403 200 200 200 200
GET             /core/v2/types/page              {} - -  200 200 200 200 200 200
GET             /core/v2/types/page?context=edit {} - -  401 403 403 403 200 200
GET             /core/v2/statuses                {} - -  200 200 200 200 200 200
GET             /core/v2/statuses?context=edit   {} - -  401 403 200 200 200 200
GET             /core/v2/statuses/publish        {} - -  200 200 200 200 200 200
GET             /core/v2/statuses/draft          {} - -  401 403 200 200 200 200
GET             /core/v2/taxonomies              {} - -  200 200 200 200 200 200
GET             /core/v2/taxonomies?context=edit {} - -  401 403 200 200 200 200
GET             /core/v2/taxonomies/category     {} - -  200 200 200 200 200 200
GET             /core/v2/taxonomies/category?context=edit {} - -  401 403 200 200 200 200
GET             /core/v2/taxonomies/nav_menu     {} - -  200 200 200 200 200 200
GET             /core/v2/taxonomies/nav_menu?context=edit {} - -  401 403 403 403 403 200
GET             /core/v2/themes                  {} - -  401 403 403 403 403 200
GET             /core/v2/themes?status=active    {} - -  401 403 200 200 200 200
GET             /core/v2/themes?status=inactive  {} - -  401 403 403 403 403 200
GET             /core/v2/themes/default          {} - -  401 403 200 200 200 200
GET             /core/v2/themes/other            {} - -  401 403 403 403 403 404
GET             /core/v2/block-patterns/patterns    {} - -  401 403 200 200 200 200
GET             /core/v2/block-patterns/categories  {} - -  401 403 200 200 200 200
GET             /core/v2/block-types             {} - -  401 403 200 200 200 200
GET             /core/v2/block-types/core        {} - -  401 403 200 200 200 200
GET             /core/v2/block-types/core/list   {} - -  401 403 404 404 404 404
GET,POST        /core/v2/block-renderer/core/list?context=edit {} - -  401 403 404 404 404 404
GET             /core/v2/templates               {} - -  401 403 200 200 200 200
GET             /core/v2/templates/lookup?slug=page  {} - -  401 403 200 200 200 200
GET             /core/v2/template-parts          {} - -  401 403 200 200 200 200
GET             /core/v2/template-parts/lookup?slug=page  {} - -  401 403 200 200 200 200
GET             /wp-block-editor/v1              {} - -  200 200 200 200 200 200
GET             /wp-block-editor/v1/navigation-fallback  {} - -  401 403 403 403 403 200
GET             /wp-block-editor/v1/url-details?url=http://example.org/  {} - -  401 403 404 404 404 404
GET             /oembed/1.0/embed?url=http://localhost/a  {} - -  200 200 200 200 200 200
GET             /oembed/1.0/proxy?url=http://localhost/a  {} - -  401 403 200 200 200 200
`;

/**
 * Those of routes that a site without files and an image editor answers with 501, where the caller
 * is let through.
 */
const UNAVAILABLE = `
POST            /core/v2/media                   {"title":"a"} - -  401 403 403 501 501 501
POST            /core/v2/media/:id/edit          {"src":"http://localhost/a.png"} other inherit  401 403 403 403 501 501
POST            /core/v2/media/:id/edit          {"src":"http://localhost/a.png"} own   inherit  - 403 403 501 501 501
POST            /core/v2/media/:id/post-process  {"action":"create-image-subsizes"} other inherit  401 403 403 403 501 501
POST            /core/v2/media/:id/post-process  {"action":"create-image-subsizes"} own   inherit  - 403 501 501 501 501
`;

interface Row {
  readonly methods: readonly string[];
  readonly path: string;
  readonly query: JsonObject;
  readonly body: string;
  readonly whose: string;
  readonly statuses: readonly string[];
  readonly expected: readonly string[];
}

const rows = (TABLE + UNAVAILABLE)
  .split("\n")
  .filter((line) => line !== "")
  .map((line): Row => {
    const [methods = "", target = "", body = "", whose = "", statuses = "", ...expected] = line.split(/ +/);
    const [path = "", query = ""] = target.split("?");
    return {
      methods: methods.split(","),
      path,
      query: Object.fromEntries(new URLSearchParams(query)),
      body,
      whose,
      statuses: statuses.split(","),
      expected,
    };
  });

const TYPES: { readonly [base: string]: PostType } = {
  posts: "post",
  pages: "page",
  media: "attachment",
  blocks: "wp_block",
  "menu-items": "nav_menu_item",
  navigation: "wp_navigation",
};

function world() {
  const storage = memoryStorage();
  // The first has published something, the last has not.
  const site = contentSite({
    storage,
    users: [
      ...ROLES.map((role) => ({ id: idOf(role), slug: role, name: role, roles: [role] })),
      { id: 9, slug: "silent", name: "Silent", roles: ["author"] },
    ],
    settings: { writable: ["title"] },
    menuLocations: { primary: { description: "Main" } },
  });
  const seeds = seedsIn(storage);
  let made = 0;

  const columnsFor = (status: string): Partial<Post> => {
    if (status === "protected") return { status: "publish", password: "secret" };
    if (status === "future") return { status, date: Date.UTC(2099, 0), dateGmt: Date.UTC(2099, 0) };
    if (status === "trash") return { status, beforeTrash: { status: "draft", slug: "" } };
    return { status: status as PostStatus };
  };

  async function post(base: string, status: string, author: number): Promise<number> {
    const [kind = "", ofParent = ""] = status.split(">");
    if (ofParent === "") return seeds.post(TYPES[base] as PostType, { author, ...columnsFor(kind) });
    // Nobody's, so that only its status counts.
    const parent = await seeds.post("page", { author: 99, ...columnsFor(ofParent) });
    return seeds.post("attachment", { author, parent });
  }

  async function term(base: string): Promise<number> {
    const answer = await site.request({
      method: "POST",
      path: `/core/v2/${base}`,
      as: idOf("administrator"),
      body: { name: `Term ${made++}` },
    });
    return (answer.body as { id: number }).id;
  }

  /** A revision, or an autosave that is not the author's own. */
  async function version(path: string, base: string, id: number, author: number): Promise<number> {
    const by = author === idOf("administrator") ? idOf("editor") : idOf("administrator");
    return path.includes(":rev")
      ? seeds.revision(id, by)
      : seeds.autosave(id, ["menu-items", "navigation"].includes(base) ? idOf("administrator") : by);
  }

  /** Sends the request as `column`, for a record of its own. */
  async function ask(row: Row, method: string, status: string, column: Column) {
    const as = column === "anonymous" ? null : idOf(column as Role);
    const base = row.path.split("/")[3] ?? "";
    const other = column === "administrator" ? idOf("editor") : idOf("administrator");
    const author = row.whose === "own" ? (as ?? 0) : other;
    const id = row.path.includes(":id")
      ? await post(base, status, author)
      : row.path.includes(":term")
        ? await term(base)
        : 0;
    const part =
      row.path.includes(":rev") || row.path.includes(":auto") ? await version(row.path, base, id, author) : 0;
    const before = await seeds.versionOf(id);
    const answer = await site.request({
      method,
      path: row.path.replace(/:id|:term/, String(id)).replace(/:rev|:auto/, String(part)),
      query: row.query,
      body: JSON.parse(row.body.replace("%", `Term ${made++}`)) as JsonObject,
      as,
    });
    return { answer, isChanged: (await seeds.versionOf(id)) !== before };
  }
  return { site, ask, seeds };
}

/** `/core/v2/posts/:id` of an index's `/core/v2/posts/(?P<id>[\d]+)`, and of the paths above. */
const shapeOf = (path: string): string =>
  path
    .replace(/\(\?P<\w+>\[[^\]]*\]\+\)/g, ":id")
    .replace(/:(?:term|rev|auto)\b/, ":id")
    .replace(/(themes|block-types|block-renderer)((?:\/\w[\w-]*)+)$/, (_, base, names: string) =>
      names.split("/").fill(":id", 1).join("/").replace(/^/, base),
    )
    .replace(/(types|statuses|taxonomies|users|menu-locations)\/(?!me\b)[\w-]+$/, "$1/:id");

describe("the table of rights", () => {
  const { site, ask, seeds } = world();
  beforeAll(() => seeds.post("post", { author: idOf("administrator"), status: "publish" }));

  it("has a row for every route and method of the service, and for no other", async () => {
    const { body } = await site.request({ method: "GET", path: "/", as: null });
    const { routes } = body as unknown as { routes: { [path: string]: { methods: string[] } } };
    const existing = Object.entries(routes).flatMap(([path, { methods }]) =>
      methods.map((name) => `${shapeOf(path)} ${name}`),
    );
    const listed = rows.flatMap(({ path, methods }) => methods.map((name) => `${shapeOf(path)} ${name}`));
    expect([...new Set(listed)].sort()).toEqual([...new Set(existing)].sort());
  });

  const cases = rows.flatMap((row) => row.statuses.map((status) => [row, status] as const));
  it.each(
    cases.map(([row, status]) => {
      const query = new URLSearchParams(row.query as Record<string, string>).toString();
      const what = [
        row.methods.join(),
        `${row.path}?${query}`.replace(/\?$/, ""),
        row.body,
        row.whose,
        status,
      ];
      return [what.filter((word) => word !== "-" && word !== "{}").join(" "), row, status] as const;
    }),
  )("%s", async (_, row, status) => {
    expect(row.expected).toHaveLength(COLUMNS.length);
    for (const method of row.methods) {
      const statuses: string[] = [];
      for (const [at, column] of COLUMNS.entries()) {
        if (row.expected[at] === "-") {
          statuses.push("-");
          continue;
        }
        const { answer, isChanged } = await ask(row, method, status, column);
        statuses.push(String(answer.status));
        const isWritten = method !== "GET" && answer.status < 300 && row.path.includes(":id");
        expect([column, isChanged]).toEqual([column, isWritten]);
      }
      expect([method, ...statuses]).toEqual([method, ...row.expected]);
    }
  });
});

describe("a list", () => {
  interface Listed {
    readonly id: number;
    readonly status: string;
  }

  it("shows each role exactly those records that it could read one by one, in either context", async () => {
    const storage = memoryStorage();
    const call = callsOf(contentSite({ storage }));
    const seeds = seedsIn(storage);
    const statuses = ["publish", "future", "draft", "pending", "private", "trash"] as const;
    const ids = new Map<string, number[]>(Object.keys(TYPES).map((base) => [base, []]));
    const put = async (base: string, given: Partial<Post>): Promise<number> => {
      const id = await seeds.post(TYPES[base] as PostType, given);
      ids.get(base)?.push(id);
      return id;
    };
    for (const author of [...ROLES.map(idOf), 99]) {
      for (const base of ["posts", "pages", "blocks", "menu-items"]) {
        for (const status of statuses) await put(base, { author, status });
      }
      for (const status of ["inherit", "private", "trash"] as const) await put("media", { author, status });
      for (const status of statuses) {
        await put("media", { author, parent: await put("pages", { author: idOf("author"), status }) });
      }
    }
    /** Everything that the list shows, on all its pages; in the statuses that may be asked for. */
    async function listed(base: string, as: Role | undefined, context: string): Promise<Listed[]> {
      const all = base === "media" ? "inherit,private" : "any";
      const isAllowed = (await call(`GET /${base}`, { as, query: { context, status: all } })).status === 200;
      const found: Listed[] = [];
      for (let page = 1, pages = 1; page <= pages; page += 1) {
        const query = { context, per_page: 100, page, ...(isAllowed ? { status: all } : {}) };
        const list = await call(`GET /${base}`, { as, query });
        if (list.status !== 200) return [];
        pages = Number(list.headers["X-WP-TotalPages"]);
        found.push(...(list.body as Listed[]));
      }
      return found.sort((a, b) => a.id - b.id);
    }

    for (const [base, all] of ids) {
      for (const as of [undefined, ...ROLES]) {
        for (const context of ["view", "edit"]) {
          const found = await listed(base, as, context);
          const asked = new Set(found.map(({ status }) => status));
          const readable: number[] = [];
          for (const id of all) {
            const { status, body } = await call(`GET /${base}/${id}`, { as, query: { context } });
            if (status === 200 && asked.has(body.status)) readable.push(id);
          }
          expect([base, as, context, found.map(({ id }) => id)]).toEqual([base, as, context, readable]);
        }
      }
    }
  });
});

describe("a role of the host", () => {
  it("may edit what it may not delete", async () => {
    const storage = memoryStorage();
    const capabilities = ["read", "edit_posts", "edit_published_posts", "edit_others_posts"];
    const call = callsOf(
      contentSite({
        storage,
        roles: { keeper: { capabilities } },
        users: [{ id: idOf("author"), slug: "keeper", name: "Keeper", roles: ["keeper"] }],
      }),
    );
    const id = await seedsIn(storage).post("post", { status: "publish", author: 99 });
    const asked = async (request: string) =>
      (await call(request, { as: "author", body: { title: "a" } })).status;
    expect([await asked(`PUT /posts/${id}`), await asked(`DELETE /posts/${id}`)]).toEqual([200, 403]);
    const { headers } = await call(`GET /posts/${id}`, { as: "author" });
    expect(headers["Allow"]).toBe("GET, POST, PUT, PATCH");
  });
});

/**
 * A site with public content, and the same one with as much again that nobody but its makers may
 * know of.
 */
async function twins() {
  const build = async (hasHidden: boolean) => {
    const clock = manualClock(NOON);
    const site = contentSite({ clock });
    const call = callsOf(site);
    const admin = { as: "administrator" } as const;
    const made = async (path: string, body: JsonObject, as: Role = "administrator"): Promise<number> =>
      (await call(`POST ${path}`, { as, body })).body.id as number;
    const gone: (() => Promise<void>)[] = [];
    /** In the other site too, so that ids are the same; there it goes again. */
    const hidden = async (base: string, body: JsonObject, as: Role = "administrator"): Promise<number> => {
      const id = await made(
        `/${base}`,
        { title: "Secret treasure", content: "Secret treasure", ...body },
        as,
      );
      gone.push(async () => {
        await call(`DELETE /${base}/${id}`, { as, query: { force: true } });
      });
      return id;
    };

    const category = await made("/categories", { name: "News" });
    const tag = await made("/tags", { name: "Blue" });
    const menu = await made("/menus", { name: "Main" });
    const terms = { categories: [category], tags: [tag] };
    const page = await made("/pages", { title: "Home", content: "treasure of all", status: "publish" });
    const below = await made("/pages", { title: "Below", status: "publish", parent: page, menu_order: 3 });
    for (const title of ["Apple treasure", "Banana", "Cherry"]) {
      await made("/posts", {
        title,
        content: `${title} text`,
        status: "publish",
        ...terms,
        date: "2026-01-02T03:04:05",
      });
    }
    const post = await made("/posts", { title: "By an author", status: "publish" }, "author");

    const ids: number[] = [];
    for (const status of ["draft", "pending", "private", "future"]) {
      const date = status === "future" ? { date: "2099-01-01T00:00:00" } : {};
      ids.push(await hidden("posts", { status, ...terms, ...date }));
      ids.push(
        await hidden(
          "posts",
          { status, title: "Apple treasure", slug: "secret", ...date, sticky: true },
          "editor",
        ),
      );
      ids.push(await hidden("pages", { status, parent: page, menu_order: 1, ...date }));
      ids.push(await hidden("pages", { status, parent: below, ...date }, "editor"));
    }
    ids.push(await hidden("posts", { status: "draft" }, "contributor"));
    for (const status of ["publish", "draft"]) {
      ids.push(await hidden("blocks", { status }));
      ids.push(await hidden("menu-items", { status, url: "https://example.org/", menus: menu }));
      ids.push(
        await hidden("menu-items", {
          status,
          type: "post_type",
          object: "page",
          object_id: page,
          menus: menu,
        }),
      );
    }
    ids.push(await hidden("navigation", { status: "draft" }));
    ids.push(await hidden("navigation", { status: "private" }));
    const trashed = [await hidden("posts", terms), await hidden("pages", { parent: page })];
    await call(`DELETE /posts/${trashed[0]}`, admin);
    await call(`DELETE /pages/${trashed[1]}`, admin);
    if (!hasHidden) for (const remove of gone) await remove();
    return { site, call, ids: [...ids, ...trashed], known: { category, tag, menu, page, below, post } };
  };
  const [empty, full] = [await build(false), await build(true)];
  expect(full.known).toEqual(empty.known);
  expect(full.ids).toEqual(empty.ids);
  return { empty, full };
}

describe("what is not published", () => {
  type Twins = Awaited<ReturnType<typeof twins>>;
  let both: Twins;
  beforeAll(async () => {
    both = await twins();
  });

  /** Returns the whole response that an anonymous client or a role receives. */
  async function answerOf({ site }: Twins["full"], method: string, target: string, as?: Role): Promise<Json> {
    const [path = "", query = ""] = target.split("?");
    const headers = as === undefined ? {} : { authorization: credentials(as) };
    const response = await site.handle({
      method,
      path: `/core/v2${path}`,
      query,
      headers,
      body: null,
      baseUrl: "http://localhost",
    });
    const body = response?.body;
    return [
      response?.status ?? 0,
      response?.headers as JsonObject,
      body ? Buffer.from(body as Uint8Array).toString() : null,
    ];
  }

  /** Those of the addresses that are answered differently, or with a word of what is hidden. */
  async function tellingOnes(targets: readonly string[], as?: Role): Promise<readonly string[]> {
    const found: string[] = [];
    for (const target of targets) {
      for (const method of ["GET", "HEAD", "OPTIONS"]) {
        const full = JSON.stringify(await answerOf(both.full, method, target, as));
        const empty = JSON.stringify(await answerOf(both.empty, method, target, as));
        if (full !== empty || full.includes("Secret"))
          found.push(`${method} ${target}: ${full}, not ${empty}`);
      }
    }
    return found;
  }

  it("changes no answer to somebody anonymous: no list, total, order, search, link, embed, count, ETag or header", async () => {
    const { page, below, post, category, tag, menu } = both.full.known;
    const include = both.full.ids.join();
    const filters = [
      "",
      "search=treasure",
      "search=secret&orderby=relevance",
      "search=-nothing",
      `include=${include}`,
      `include=${include}&orderby=include`,
      `exclude=${include}&per_page=2`,
      "slug=secret,secret-treasure,apple-treasure,apple-treasure-2",
      "slug=secret&orderby=include_slugs",
      "author=1",
      "author=2,4&per_page=1",
      "author_exclude=1",
      "after=2026-06-01T00:00:00",
      "before=2100-01-01T00:00:00&order=asc",
      "modified_after=2026-06-01T00:00:00",
      "orderby=modified",
      "orderby=title&order=asc&per_page=1&page=2",
      "orderby=id&offset=1&per_page=1",
      "orderby=author",
      "per_page=1&page=5",
      "per_page=100&_embed",
      "_embed=wp:term,author,up,version-history&context=embed",
      "status=publish",
      "password=secret",
      "context=edit",
      "status=draft",
      "status=any",
      "status=trash",
    ];
    const own: { readonly [base: string]: readonly string[] } = {
      posts: [
        `categories=${category}`,
        `tags=${tag}&tax_relation=OR`,
        `categories_exclude=${category}`,
        "sticky=true",
        "sticky=false",
        "ignore_sticky=false",
        "format=standard",
      ],
      pages: [
        `parent=${page}`,
        `parent=${below}`,
        `parent_exclude=${page}`,
        "menu_order=1",
        "orderby=menu_order",
        `parent=${both.full.ids.at(-1)}`,
      ],
      media: [`parent=${include}`],
      "menu-items": [`menus=${menu}`],
      blocks: [],
      navigation: [],
    };
    const lists = Object.entries(own).flatMap(([base, more]) =>
      [...filters, ...more].map((query) => `/${base}?${query}`),
    );
    const terms = ["categories", "tags", "menus", "wp_pattern_category"].flatMap((base) =>
      ["", "orderby=count", "hide_empty=true", `post=${post}`, "search=e", "_embed"].map(
        (query) => `/${base}?${query}`,
      ),
    );
    const items = [
      `/categories/${category}`,
      `/tags/${tag}`,
      `/menus/${menu}`,
      `/pages/${page}?_embed`,
      `/pages/${below}?_embed`,
      `/posts/${post}?_embed`,
      `/posts/${post}/revisions`,
      `/pages/${page}/autosaves`,
    ];
    const others = [
      "/users",
      "/users?orderby=slug&per_page=1",
      "/users?include=1,2,3,4,5",
      "/users/4",
      "/users/2",
      "/types",
      "/statuses",
      "/statuses/draft",
    ];
    expect(await tellingOnes([...lists, ...terms, ...items, ...others])).toEqual([]);
  });

  it("changes none to a subscriber either", async () => {
    const queries = [
      "",
      "search=treasure",
      "orderby=modified&per_page=1",
      `include=${both.full.ids.join()}`,
      "slug=secret",
      "_embed",
    ];
    const lists = ["posts", "pages", "blocks", "media"].flatMap((base) =>
      queries.map((query) => `/${base}?${query}`),
    );
    const others = ["/categories?orderby=count", "/tags?hide_empty=true", "/users", "/users/4"];
    expect(await tellingOnes([...lists, ...others], "subscriber")).toEqual([]);
  });

  // WordPress tells a record that is hidden (401, 403) from one that does not exist (404); the
  // answers say nothing else.
  it("is refused under its own id in words that are the same for every such record", async () => {
    const { site, ids } = both.full;
    const answers = new Map<string, Set<string>>();
    for (const id of ids) {
      for (const base of ["posts", "pages", "blocks", "menu-items", "media"]) {
        for (const [method, query] of [
          ["GET", {}],
          ["GET", { context: "edit" }],
          ["GET", { _embed: "1" }],
          ["PUT", {}],
          ["DELETE", {}],
          ["GET", { password: "a" }],
        ] as const) {
          const { status, headers, body } = await site.request({
            method,
            path: `/core/v2/${base}/${id}`,
            as: null,
            query,
          });
          if (status === 404) continue;
          const key = `${base} ${method} ${JSON.stringify(query)}`;
          const told = JSON.stringify([status, headers, body]);
          answers.set(key, (answers.get(key) ?? new Set()).add(told));
          expect(told).not.toMatch(/Secret|treasure|draft|future|trash"/);
        }
      }
    }
    expect(answers.size).toBeGreaterThanOrEqual(20);
    // Of a menu item WordPress tells besides whether it is published.
    for (const [key, told] of answers)
      expect([key, told.size]).toEqual([key, /^menu-items GET (?!.*(?:edit|password))/.test(key) ? 2 : 1]);
  });

  it("is no more written than seen, in a batch", async () => {
    const { site, ids } = both.full;
    for (let start = 0; start < ids.length; start += 25) {
      const requests = ids
        .slice(start, start + 25)
        .map((id) => ({ method: "DELETE", path: `/core/v2/posts/${id}?force=true` }));
      const { body } = await site.request({
        method: "POST",
        path: "/batch/v1",
        as: null,
        body: { requests },
      });
      for (const { status } of (body as unknown as { responses: { status: number }[] }).responses)
        expect([401, 404]).toContain(status);
    }
    const left = await both.full.call("GET /posts", { as: "administrator", query: { status: "any,trash" } });
    expect(Number(left.headers["X-WP-Total"])).toBe(4 + 8 + 1 + 1);
  });

  it("is not embedded into what is: a parent, a featured image, a menu's page", async () => {
    const storage = memoryStorage();
    const site = contentSite({ storage });
    const seeds = seedsIn(storage);
    const draft = await seeds.post("page", { status: "draft", title: "Secret", slug: "" });
    const file = await seeds.post("attachment", { parent: draft, title: "Secret" });
    const page = await seeds.post("page", { status: "publish", parent: draft, featuredMedia: file });
    const { body } = await site.request({
      method: "GET",
      path: `/core/v2/pages/${page}`,
      as: null,
      query: { _embed: "1" },
    });
    expect(JSON.stringify(body)).not.toContain("Secret");
    const { _embedded } = body as { _embedded: { [relation: string]: { code?: string }[] } };
    expect(_embedded["up"]?.[0]?.code).toBe("rest_forbidden");
    // The media belong to the draft, so no link names them.
    expect(body).not.toHaveProperty(["_links", "wp:featuredmedia"]);
    expect(_embedded).not.toHaveProperty("wp:featuredmedia");
  });
});
