/** Endpoints of responses that an upstream keeps. */
import { z } from 'zod'
import { response } from '../chat/answers.ts'
import type { FailureCode } from '../failure.ts'
import { jsonAnswer, type RouteDescription } from './endpoint.ts'

export const STORED_FAILURES: readonly FailureCode[] = [
  'invalid_request',
  'not_found',
  'rate_limit_exceeded',
  'upstream_error',
  'upstream_unreachable',
  'no_channel_available',
  'service_unavailable',
  'upstream_timeout',
]

const stored = {
  tag: 'Chat',
  key: 'anywhere',
  pathParameters: z.object({ id: z.string().describe('Id of the response, such as resp_1.') }),
  failures: STORED_FAILURES,
} as const

const deleted = z.looseObject({ id: z.string(), object: z.string(), deleted: z.literal(true) })
const items = z.looseObject({ object: z.literal('list'), data: z.array(z.looseObject({})) })

export const STORED_RESPONSE_ENDPOINTS: readonly RouteDescription[] = [
  {
    ...stored,
    name: 'cancelResponse',
    summary: 'Cancel a response that is made in the background.',
    details: 'What the upstream reports of it is charged. It refuses to cancel any other response.',
    failures: [...STORED_FAILURES, 'task_not_cancellable'],
    answers: [jsonAnswer('Response', response)],
  },
  {
    ...stored,
    name: 'showResponse',
    summary: 'Read a response that its upstream keeps.',
    details: 'Free. Only those of the account. Shows how far one in the background is.',
    query: z.object({ include: z.string().optional().describe('Passed on.') }),
    answers: [jsonAnswer('Response', response)],
  },
  {
    ...stored,
    name: 'deleteResponse',
    summary: 'Delete a response at the upstream that keeps it.',
    details: 'Free. Its row in the call log and its charge stay.',
    answers: [jsonAnswer('ResponseDeleted', deleted)],
  },
  {
    ...stored,
    name: 'listResponseInput',
    summary: 'List the items of the input of a response that its upstream keeps.',
    details: 'Free. Parameters are passed on.',
    query: z.object({
      limit: z.string().optional(),
      order: z.string().optional(),
      after: z.string().optional(),
      before: z.string().optional(),
      include: z.string().optional(),
    }),
    answers: [jsonAnswer('ResponseInputItems', items)],
  },
]
