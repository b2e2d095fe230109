/** One public endpoint in the reference: its request, its answers, its failures. */
import type { z } from 'zod'
import type { FailureCode } from '../failure.ts'
import type { Method, RouteName } from '../routes.ts'

/** A schema that the reference lists under a separate name. */
export interface NamedSchema {
  readonly name: string
  readonly schema: z.ZodType
}

/** Content of a successful answer. */
export type AnswerContent =
  | {
      /** For a stream the schema is that of its events' data. */
      readonly contentType: 'application/json' | 'text/event-stream'
      readonly body: NamedSchema
      /** Set where it differs from the endpoint's. */
      readonly status?: number
    }
  /** Content that a schema does not describe: streams, pages, plain text. */
  | { readonly contentType: string; readonly says: string; readonly status?: number }
  /** No content. */
  | { readonly says: string; readonly status: number }

interface Description {
  readonly tag: string
  readonly summary: string
  readonly details?: string
  /** The places of the key; `none` needs no key, `management` a session or a management token. */
  readonly key: 'anywhere' | 'headers' | 'management' | 'none'
  /** The shape of its errors; chat-completions where it is not given. */
  readonly errorShape?: 'messages' | 'generate-content'
  readonly pathParameters?: z.ZodObject
  readonly query?: z.ZodObject
  readonly headers?: z.ZodObject
  readonly body?: NamedSchema
  /** A multipart form, beside the body or in its place. */
  readonly form?: NamedSchema
  /** A body that is answered. */
  readonly example?: object
  /** Status of its answers. Default: 200. */
  readonly status?: number
  readonly answers: readonly AnswerContent[]
  /** Headers of its answers, each with what it says. */
  readonly answerHeaders?: Readonly<Record<string, string>>
  /** Answered whatever state the service is in: the failures that every other endpoint can give are none of its. */
  readonly isProbe?: true
  /** The limit of the client's address does not count it. */
  readonly isUncounted?: true
  /** Besides those that every endpoint can give. */
  readonly failures: readonly FailureCode[]
  /** Failures whose status here differs from the catalog; several where it depends on the request. */
  readonly failureStatus?: Readonly<Partial<Record<FailureCode, number | readonly number[]>>>
}

/** Describes the endpoint at a route. */
export interface RouteDescription extends Description {
  readonly name: RouteName
}

export interface Endpoint extends Description {
  readonly method: Method
  /** A part in braces is a parameter. */
  readonly path: string
}

export const EVENT_STREAM = 'text/event-stream'

export const jsonAnswer = (name: string, schema: z.ZodType, status?: number) =>
  ({
    contentType: 'application/json',
    body: { name, schema },
    ...(status !== undefined && { status }),
  }) as const
