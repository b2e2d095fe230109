/**
 * One failure in three shapes. The shape follows the endpoint called; a path that belongs to no protocol has the
 * chat-completions shape. See docs/errors.md, "Catalogue"; docs/api-rules.md, "Every endpoint".
 */
import type { ChatProtocol } from '../../schemas/config/catalog.ts'
import { FAILURES, type Failure } from '../../schemas/failure.ts'

/** The errors of responses have the shape of chat-completions. */
export type ErrorShape = Exclude<ChatProtocol, 'responses'>

export function errorShapeOf(path: string): ErrorShape {
  if (path === '/v1/messages' || path.startsWith('/v1/messages/')) return 'messages'
  if (path.startsWith('/v1beta/')) return 'generate-content'
  return 'chat-completions'
}

/** Returns the JSON body for `failure`; its status and extra headers are in the failure itself. */
export function errorBody(shape: ErrorShape, failure: Failure): string {
  const row = FAILURES[failure.code]
  const { message, status, details } = failure
  switch (shape) {
    case 'chat-completions':
      return JSON.stringify({ error: { message, type: row.type, code: failure.code } })
    case 'messages':
      return JSON.stringify({ type: 'error', error: { type: row.messagesType, message, details } })
    case 'generate-content':
      return JSON.stringify({ error: { code: status, message, status: row.generateStatus } })
  }
}

/** Returns an upstream's own refusal with its status. */
export function upstreamErrorBody(
  shape: ErrorShape,
  refusal: {
    readonly status: number
    readonly message: string
    readonly type: string
    readonly code: string
  },
): string {
  const { message, type, code, status } = refusal
  switch (shape) {
    case 'chat-completions':
      return JSON.stringify({ error: { message, type, code } })
    case 'messages':
      return JSON.stringify({ type: 'error', error: { type: 'api_error', message } })
    case 'generate-content':
      return JSON.stringify({ error: { code: status, message, status: 'UNAVAILABLE' } })
  }
}
