/** The errors that both stores of files throw. */

import { PostbellError } from "../../src/core/errors.js";

export const fileNotFound = (): PostbellError =>
  new PostbellError("not_found", "There is no file of this name.");

export const invalidName = (): PostbellError =>
  new PostbellError("invalid_argument", "This cannot be the name of a file.", { field: "name" });
