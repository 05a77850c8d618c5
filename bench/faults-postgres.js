export const postgresFaults = [];
