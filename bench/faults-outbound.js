export const outboundFaults = [];
