/** One public endpoint as the reference describes it: what it takes, what it answers, how it may refuse. */
import type { z } from 'zod'
import type { FailureCode } from '../failure.ts'

/** A schema that the reference lists under a separate name. */
export interface NamedSchema {
  readonly name: string
  readonly schema: z.ZodType
}

/** What a successful answer holds. */
export type AnswerContent =
  | {
      readonly contentType: 'application/json'
      readonly body: NamedSchema
      /** Where it is not the endpoint's. */
      readonly status?: number
    }
  /** What a schema says little of: streams, pages, plain text. */
  | { readonly contentType: string; readonly says: string }

export interface Endpoint {
  readonly method: 'GET' | 'HEAD' | 'POST' | 'DELETE'
  /** A part in braces is a parameter. */
  readonly path: string
  readonly tag: string
  readonly summary: string
  readonly details?: string
  /** Where the key is looked for; `none` needs no key. */
  readonly key: 'anywhere' | 'authorization_or_x_api_key' | 'none'
  /** The shape of its errors; chat-completions where it is not given. */
  readonly errorShape?: 'messages' | 'generate-content'
  readonly pathParameters?: z.ZodObject
  readonly query?: z.ZodObject
  readonly headers?: z.ZodObject
  readonly body?: NamedSchema
  /** The same as a multipart form, where it is taken. */
  readonly form?: NamedSchema
  /** A body that is answered. */
  readonly example?: object
  /** An endpoint that only redirects: its own status, no content. */
  readonly status?: number
  readonly answers: readonly AnswerContent[]
  /** Answered whatever state the service is in: the failures that every other endpoint can give are none of its. */
  readonly isProbe?: true
  /** Besides those that every endpoint can give. */
  readonly failures: readonly FailureCode[]
  /** Where a failure has another status here than in the catalogue. */
  readonly failureStatus?: Readonly<Partial<Record<FailureCode, number>>>
}

export const EVENT_STREAM = 'text/event-stream'
