/**
 * Sets the limit of a request's head. uWebSockets.js reads its limit from the environment while it is loaded, so this
 * module is imported before it.
 */

/** Request line and header lines together. The server's default is 4 KB. */
export const MAX_HEAD_BYTES = 64 * 1024

process.env.UWS_HTTP_MAX_HEADERS_SIZE = String(MAX_HEAD_BYTES)
