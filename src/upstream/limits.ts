/** Every bound of the upstream client, with its unit in the name. What an operator may want to move is an option too. */

/** Granularity of every time limit below: one unref'd timer per client checks all connections this often. */
export const TICK_MS = 200

/** Name lookup, TCP handshake and TLS handshake together. */
export const DEFAULT_CONNECT_TIMEOUT_MS = 10_000
/** How long an unused connection is kept. A shorter `Keep-Alive: timeout` of the server wins. */
export const DEFAULT_IDLE_CONNECTION_MS = 30_000
/** Safety margin taken off the server's own `Keep-Alive: timeout`. */
export const KEEP_ALIVE_MARGIN_MS = 1_000

/** Open sockets of one client, over all origins. The machines allow 20,000 open files. */
export const DEFAULT_MAX_CONNECTIONS = 16_384
/** Reserved file descriptors: calls are still answered when clients hold all others. */
export const RESERVED_DESCRIPTORS = 16
/** Further attempts to connect for one call, where file descriptors are missing: for the name, then for the address. */
export const MAX_CONNECT_RETRIES = 2
/** Unused connections kept for one origin; the one unused longest gives way. */
export const DEFAULT_MAX_IDLE_PER_ORIGIN = 1_024
/** Origins remembered (for TLS sessions) though no connection to them is open. */
export const MAX_REMEMBERED_ORIGINS = 1_024

/** Buffer of one read, shared by all connections of a client. */
export const READ_BUFFER_BYTES = 65_536
/** Requests up to this size, head and body, go out as one copied write. */
export const JOINED_REQUEST_BYTES = 16_384
/** Larger bodies go out in slices of this size, the next one when the kernel has taken the last. */
export const BODY_SLICE_BYTES = 131_072

/** Status line and header fields of one response, of each interim response too. */
export const MAX_RESPONSE_HEAD_BYTES = 16_384
export const MAX_RESPONSE_HEADER_COUNT = 128
/** 1xx responses before the final one. */
export const MAX_INTERIM_RESPONSES = 8
/** Decoded body of one response. */
export const DEFAULT_MAX_BODY_BYTES = 1_073_741_824
export const MAX_CONTENT_LENGTH_DIGITS = 15
/** Hexadecimal digits of a chunk size, leading zeros included. */
export const MAX_CHUNK_SIZE_DIGITS = 8
/** Extensions of one chunk. */
export const MAX_CHUNK_EXTENSION_BYTES = 1_024
export const MAX_TRAILER_BYTES = 8_192
