/** The state of the service, and this reference. They need no key. */
import { z } from 'zod'
import { jsonAnswer, type RouteDescription } from './endpoint.ts'

export const readinessQuery = z.object({
  for: z
    .literal('calls', 'must be calls, or left out')
    .optional()
    .describe('Whether calls are taken, whichever engine is down.'),
})

const open = { key: 'none', tag: 'Service', failures: [] } as const
const HTTP_PARTIAL_CONTENT = 206
const HTTP_FOUND = 302
const HTTP_NOT_MODIFIED = 304
const HTTP_SERVICE_UNAVAILABLE = 503
/** Any type may come in its place. */
const FILE_TYPE = '*/*'
const HTTP_RANGE_NOT_SATISFIABLE = 416

const plain = (says: string, status?: number) =>
  ({ contentType: 'text/plain; charset=utf-8', says, ...(status !== undefined && { status }) }) as const

const HTTP_NO_CONTENT = 204
const agent = {
  ...open,
  tag: 'Agents',
  details:
    'Free, without a key, and kept nowhere: nothing of it is a call. The limit of the address counts it.',
  answers: [{ status: HTTP_NO_CONTENT, says: 'Taken.' }],
} as const
const agentReport = {
  ...agent,
  body: { name: 'AgentReport', schema: z.unknown() },
  failures: ['request_too_large'],
} as const
const agentPage = z.object({ page: z.string().describe('Such as `settings`.') })

export const serviceEndpoints: readonly RouteDescription[] = [
  {
    name: 'takePaymentEvent',
    key: 'none',
    tag: 'Service',
    summary: 'Take an event of the payment provider.',
    details: 'Its signature is the header `Stripe-Signature`. An event that comes again changes nothing.',
    headers: z.object({ 'stripe-signature': z.string() }),
    body: { name: 'PaymentEvent', schema: z.looseObject({ id: z.string(), type: z.string() }) },
    answers: [jsonAnswer('PaymentEventTaken', z.object({ received: z.literal(true), outcome: z.string() }))],
    failures: ['not_found'],
  },
  { ...agent, name: 'greetAgent', summary: 'Answer the greeting of Claude Code.' },
  { ...agentReport, name: 'takeAgentEvents', summary: 'Take events of Claude Code.' },
  {
    ...agent,
    name: 'readAgentSettings',
    pathParameters: agentPage,
    summary: 'Answer that there are no settings of Claude Code here.',
  },
  {
    ...agentReport,
    name: 'takeAgentReports',
    pathParameters: agentPage,
    summary: 'Take metrics of Claude Code.',
  },
  {
    ...agentReport,
    name: 'saveAgentSettings',
    pathParameters: agentPage,
    summary: 'Take settings of Claude Code.',
  },
  {
    ...open,
    name: 'checkHealth',
    isProbe: true,
    summary: 'Check that the process lives.',
    answers: [plain('ok')],
  },
  {
    ...open,
    name: 'checkReadiness',
    isProbe: true,
    summary: 'Check that every engine answers.',
    query: readinessQuery,
    failures: ['invalid_request'],
    details: '503 while one does not, and while the service drains. Operators see the reason.',
    answers: [plain('ready'), plain('not ready', HTTP_SERVICE_UNAVAILABLE)],
  },
  {
    ...open,
    name: 'readMetrics',
    isProbe: true,
    summary: 'Get the metrics of the whole service.',
    details:
      'For operators: by their own listener, or with `Authorization: Bearer` and the token of the configuration. ' +
      '404 where only their own listener answers.',
    answers: [plain('Prometheus text.')],
    failures: ['invalid_api_key', 'not_found'],
  },
  {
    ...open,
    name: 'readReference',
    summary: 'Get this reference for programs.',
    answers: [jsonAnswer('OpenApiDocument', z.looseObject({ openapi: z.string() }))],
  },
  {
    ...open,
    name: 'openReference',
    summary: 'Get this reference for people.',
    answers: [{ contentType: 'text/html; charset=utf-8', says: 'A page.' }],
  },
  {
    ...open,
    name: 'readReferenceScript',
    summary: 'Get the script of the page.',
    answers: [{ contentType: 'text/javascript; charset=utf-8', says: 'Compressed by gzip.' }],
  },
  {
    ...open,
    name: 'listDocs',
    summary: 'List the pages of the docs.',
    details: 'In the form of llms.txt.',
    answers: [plain('Markdown with a link to each page.')],
  },
  {
    ...open,
    name: 'readDocsPage',
    summary: 'Get a page of the docs.',
    pathParameters: z.object({ page: z.string().describe('Such as `clients.md`.') }),
    answers: [{ contentType: 'text/markdown; charset=utf-8', says: 'Markdown.' }],
    failures: ['not_found'],
  },
  {
    name: 'readFile',
    key: 'none',
    tag: 'Files',
    isUncounted: true,
    summary: 'Get a file that was made or uploaded.',
    details:
      'Links to files come with the answers of other endpoints and are used as they are. A part of a file can be asked ' +
      'for with `range`. Where files are kept in a bucket, 302 leads there.',
    pathParameters: z.object({ key: z.string().describe('Such as `images/img_…-1.png`; it has slashes.') }),
    query: z.object({
      expires: z.string().optional().describe('Epoch seconds; links that last have none.'),
      signature: z.string(),
    }),
    headers: z.object({
      'if-none-match': z.string().optional().describe('An `etag`: 304 where the file is still the same.'),
      range: z.string().optional().describe('One part, such as `bytes=0-65535`; answered with 206.'),
      'if-range': z.string().optional().describe('An `etag`: the whole file where it is another one.'),
    }),
    answers: [
      { contentType: FILE_TYPE, says: 'The file, with its own type and its length.' },
      { contentType: FILE_TYPE, says: 'The part.', status: HTTP_PARTIAL_CONTENT },
      { status: HTTP_NOT_MODIFIED, says: 'The file is still the same.' },
      { status: HTTP_FOUND, says: 'Leads to the bucket that has the file.' },
    ],
    answerHeaders: {
      etag: 'Changes with the file.',
      'content-disposition': 'The name of the file.',
      'accept-ranges': 'Always `bytes`.',
      'cache-control': 'How long the link still opens.',
      'content-range': 'Of a part: its place, and the length of the file.',
      location: 'Of 302: a link that opens for a while.',
    },
    failures: ['permission_denied', 'not_found', 'invalid_request'],
    failureStatus: { invalid_request: HTTP_RANGE_NOT_SATISFIABLE },
  },
  {
    ...open,
    name: 'openFirstPage',
    summary: 'Go to the console, or to the reference where it is not served.',
    answers: [{ status: HTTP_FOUND, says: 'Leads to the page.' }],
    answerHeaders: { location: 'The page.' },
  },
]
