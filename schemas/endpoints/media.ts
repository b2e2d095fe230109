/** Common parts of the descriptions of media endpoints. */
import { z } from 'zod'
import type { FailureCode } from '../failure.ts'
import { idempotencyHeader } from '../idempotency-key.ts'
import type { RouteName } from '../routes.ts'
import { taskListQuery } from '../tasks/list.ts'
import type { TaskKind } from '../tasks/task.ts'
import { maxPriceHeader } from './chat.ts'
import { jsonAnswer, type RouteDescription } from './endpoint.ts'

const HTTP_FORBIDDEN = 403
const HTTP_NOT_FOUND = 404

/** Of requests that make something and are billed. */
export const CREATE_FAILURES: readonly FailureCode[] = [
  'invalid_request',
  'model_not_found',
  'invalid_idempotency_key',
  'quota_exceeded',
  'model_not_allowed',
  'idempotency_key_reuse',
  'idempotency_in_flight',
  'request_too_large',
  'rate_limit_exceeded',
  'upstream_error',
  'upstream_unreachable',
  'no_channel_available',
  'upstream_timeout',
]

/** Media endpoints answer 403 where chat answers 400. */
const FORBIDDEN_MODEL = { model_not_allowed: HTTP_FORBIDDEN } as const

/** Endpoints with one fixed model answer 404 where the catalog lacks it. */
export const OWN_MODEL = { ...FORBIDDEN_MODEL, model_not_found: HTTP_NOT_FOUND } as const

const intentHeaders = z.object({
  ...maxPriceHeader,
  ...idempotencyHeader('a repeated call is answered, and nothing is made or billed again.'),
})

export const createEndpoint = {
  key: 'anywhere',
  headers: intentHeaders,
  failures: CREATE_FAILURES,
  failureStatus: FORBIDDEN_MODEL,
} as const

/** Reading is free, at a zero balance too. */
export const readEndpoint = { key: 'anywhere' } as const

/** Cancels a task that no upstream works on yet. */
const cancelEndpoint = {
  ...readEndpoint,
  details:
    'What was held goes back in full. So it does for a task that the provider has not confirmed, once the provider ' +
    'cannot be asked: a result that comes later is discarded.',
  failures: [
    'not_found',
    'task_not_cancellable',
    'rate_limit_exceeded',
    'upstream_error',
    'upstream_unreachable',
    'upstream_timeout',
  ],
} as const

const filesDeleted = z.object({ id: z.string(), deleted: z.literal(true) })

/** Deletes the results of a task. */
const deleteFilesEndpoint = {
  ...readEndpoint,
  summary: 'Delete the files of a task that has ended.',
  details: 'Links to them stop working. The task, its row in the call log and its charge stay.',
  failures: ['invalid_request', 'not_found', 'rate_limit_exceeded'],
  answers: [jsonAnswer('FilesDeleted', filesDeleted)],
} as const

export const idPath = z.object({ id: z.string() })

interface TaskEndpoints {
  readonly names: readonly [list: RouteName, show: RouteName, cancel: RouteName, deleteFiles: RouteName]
  readonly tag: string
  readonly kind: TaskKind
  /** Such as `an image task`. */
  readonly one: string
  /** The name of its schema, and of that of a list. */
  readonly name: string
  readonly task: z.ZodType
  readonly list: z.ZodType
  /** Fields in which the list or the cancellation differs. */
  readonly listing?: Partial<RouteDescription>
  readonly cancelling?: Partial<RouteDescription>
}

/** Returns what every kind of task has: the list, a task, its cancellation, and the deletion of its files. */
export function describeTaskEndpoints(of: TaskEndpoints): RouteDescription[] {
  const { tag, kind, one, name, task, list, listing, cancelling } = of
  const [listRoute, show, cancel, deleteFiles] = of.names
  const ofOne = { tag, pathParameters: idPath, answers: [jsonAnswer(name, task)] }
  return [
    {
      ...readEndpoint,
      name: listRoute,
      tag,
      summary: `List the ${kind} tasks of the account.`,
      query: taskListQuery(kind),
      answers: [jsonAnswer(`${name}List`, list)],
      failures: ['invalid_request', 'rate_limit_exceeded'],
      ...listing,
    },
    {
      ...readEndpoint,
      ...ofOne,
      name: show,
      summary: `Get ${one}.`,
      failures: ['not_found', 'rate_limit_exceeded'],
    },
    {
      ...cancelEndpoint,
      ...ofOne,
      name: cancel,
      summary: `Cancel ${one} that is still queued.`,
      ...cancelling,
    },
    { ...deleteFilesEndpoint, name: deleteFiles, tag, pathParameters: idPath },
  ]
}
