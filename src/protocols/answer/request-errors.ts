/** Errors inside a stream, by the names that an upstream gives them. See docs/errors.md, "Errors inside a stream". */
import type { ChannelProtocol, ChatProtocol } from '../../../schemas/config/catalog.ts'
import { type LooseObject, parseFields, toFields, toText } from '../loose.ts'

const OF_COMPLETIONS =
  /^(?:context_length_exceeded|invalid_prompt|content_filter|content_policy_violation|string_above_max_length|invalid_image.*|unsupported_.*)$/

/** Errors that the request itself caused, by the protocol of the upstream: no channel would answer it otherwise. */
const REQUEST_ERRORS: Readonly<Record<ChatProtocol, RegExp>> = {
  'chat-completions': OF_COMPLETIONS,
  responses: OF_COMPLETIONS,
  messages: /^(?:invalid_request_error|request_too_large)$/,
  'generate-content': /^INVALID_ARGUMENT$/,
}

/** Names of errors about the gateway's own access, with the status that says the same. */
const ACCESS_STATUS: Readonly<Record<string, number>> = {
  authentication_error: 401,
  invalid_api_key: 401,
  UNAUTHENTICATED: 401,
  billing_error: 402,
  insufficient_quota: 402,
  permission_error: 403,
  permission_denied: 403,
  PERMISSION_DENIED: 403,
}
const BAD_REQUEST = 400

const UNREADABLE = 'unreadable'
/** Returns the payload for an event that is none: the gateway cannot read it. */
export const unreadableEvent = (message: string): string =>
  JSON.stringify({ error: { type: UNREADABLE, message } })
/** Returns whether the payload is one of those: it is no event that an upstream has sent. */
export const isUnreadable = (names: readonly string[]): boolean => names.includes(UNREADABLE)

/** Returns the fields of the error in an event, whichever protocol's. */
export function readErrorFields(payload: string): LooseObject {
  const parsed = parseFields(payload)
  const event = toFields(Array.isArray(parsed) ? parsed[0] : parsed)
  return typeof event.error === 'object' ? toFields(event.error) : event
}

/** Returns the message for the client in the error of an event. */
export const readErrorMessage = (payload: string): string =>
  toText(readErrorFields(payload).message) || 'The upstream failed.'

/** Returns the names in an error event: its code, type and status. */
export function errorNames(payload: Buffer): readonly string[] {
  const { code, type, status } = readErrorFields(payload.toString('utf8'))
  return [typeof code === 'number' ? String(code) : toText(code), toText(type), toText(status)].filter(
    Boolean,
  )
}

/** Returns whether the request itself caused the error. */
export function isOfRequest(names: readonly string[], protocol: ChannelProtocol): boolean {
  const known: Partial<Record<ChannelProtocol, RegExp>> = REQUEST_ERRORS
  return names.some((name) => known[protocol]?.test(name) === true)
}

/** Returns the HTTP status of an error that may be about the gateway's access; 400 for any other. */
export function accessStatus(names: readonly string[]): number {
  const statuses = names.map((name) => ACCESS_STATUS[name] ?? Number(name))
  return statuses.find((status) => status >= 401 && status <= 403) ?? BAD_REQUEST
}
