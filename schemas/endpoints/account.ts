/** An account's view of itself and of the service. */
import { z } from 'zod'
import { billingSubscription, billingUsage, billingUsageQuery, creditGrants } from '../accounts/billing.ts'
import {
  contentModel,
  contentModelList,
  contentModelsQuery,
  keyBalance,
  modelList,
  modelsQuery,
  publicCatalog,
  shownModel,
} from '../accounts/models.ts'
import { keyUsage, keyUsageQuery, usageQuery, usageReport } from '../accounts/usage.ts'
import { logDetailAnswer, logDetailPath, logDetailQuery } from '../call-log/detail.ts'
import { logPage, logQuery } from '../call-log/query.ts'
import { logSummary, logSummaryQuery } from '../call-log/summary.ts'
import { serviceStatus } from '../status.ts'
import { jsonAnswer, type RouteDescription } from './endpoint.ts'

const free = { key: 'anywhere', failures: [] } as const
const oneModel = {
  tag: 'Models',
  pathParameters: z.object({ model: z.string().describe('Model id or alias.') }),
  failures: ['model_not_found', 'rate_limit_exceeded'],
  failureStatus: { model_not_found: 404 },
} as const
const NUMBERS = 'In the shape that third-party chat clients read: amounts are numbers, one credit reads as 1.'

export const accountEndpoints: readonly RouteDescription[] = [
  {
    ...free,
    name: 'listModels',
    tag: 'Models',
    key: 'headers',
    summary: 'List the models that the key may call.',
    query: modelsQuery,
    answers: [jsonAnswer('ModelList', modelList)],
    failures: ['invalid_request', 'rate_limit_exceeded'],
  },
  {
    ...free,
    ...oneModel,
    name: 'showModel',
    key: 'headers',
    summary: 'Show one of the models that the key may call.',
    answers: [jsonAnswer('Model', shownModel)],
  },
  {
    ...free,
    name: 'listContentModels',
    tag: 'Models',
    errorShape: 'generate-content',
    summary: 'List the models that the key may call, generate-content protocol.',
    query: contentModelsQuery,
    answers: [jsonAnswer('ContentModelList', contentModelList)],
    failures: ['invalid_request', 'rate_limit_exceeded'],
  },
  {
    ...free,
    ...oneModel,
    name: 'showContentModel',
    errorShape: 'generate-content',
    summary: 'Show one of the models that the key may call, generate-content protocol.',
    answers: [jsonAnswer('ContentModel', contentModel)],
  },
  {
    ...free,
    name: 'listPublicModels',
    tag: 'Models',
    key: 'none',
    summary: 'Show the whole catalog with prices.',
    answers: [jsonAnswer('PublicCatalog', publicCatalog)],
  },
  {
    ...free,
    name: 'showStatus',
    tag: 'Models',
    key: 'none',
    summary: 'Show which models work now, and how they did in the last 30 days.',
    details:
      'By the calls of all customers, without their numbers: those that failed by the fault of a provider against those that ' +
      'succeeded. Measured at most once in ten seconds. 503 if the call log is down and nothing is known yet.',
    answers: [jsonAnswer('ServiceStatus', serviceStatus)],
    answerHeaders: { 'cache-control': 'Public, for ten seconds.' },
  },
  {
    ...free,
    name: 'showBalance',
    tag: 'Account',
    summary: 'Show the wallet of the key.',
    details: 'Free, at a zero balance too; never counted by a rate limit.',
    answers: [jsonAnswer('KeyBalance', keyBalance)],
  },
  {
    ...free,
    name: 'showKeyUsage',
    tag: 'Account',
    summary: 'Show what the key has left, and what it spent today and in a session, for a status line.',
    details:
      'Free, at a zero balance too. A key may ask 60 times a minute; other rate limits do not count it. Sums may be two seconds old.',
    query: keyUsageQuery,
    answers: [jsonAnswer('KeyUsage', keyUsage)],
    failures: ['invalid_request', 'rate_limit_exceeded'],
  },
  {
    ...free,
    name: 'sumUsage',
    tag: 'Account',
    summary: 'Sum up what the account used in a window of time.',
    query: usageQuery,
    answers: [jsonAnswer('Usage', usageReport)],
    failures: ['invalid_request'],
  },
  {
    ...free,
    name: 'showBillingSubscription',
    tag: 'Account',
    summary: 'Show the wallet as a subscription with a limit.',
    details: NUMBERS,
    answers: [jsonAnswer('BillingSubscription', billingSubscription)],
    failures: ['rate_limit_exceeded'],
  },
  {
    ...free,
    name: 'sumBillingUsage',
    tag: 'Account',
    summary: 'Show what was charged, by UTC day and model.',
    details: NUMBERS,
    query: billingUsageQuery,
    answers: [jsonAnswer('BillingUsage', billingUsage)],
    failures: ['invalid_request', 'rate_limit_exceeded'],
  },
  {
    ...free,
    name: 'listCreditGrants',
    tag: 'Account',
    summary: 'Show the wallet as granted, used and available credit.',
    details: NUMBERS,
    answers: [jsonAnswer('CreditGrants', creditGrants)],
    failures: ['rate_limit_exceeded'],
  },
  {
    ...free,
    name: 'listLogs',
    tag: 'Call log',
    summary: 'List calls, page by page.',
    details:
      'Free, at a zero balance too. A row is there as soon as its call has ended. An empty value is no filter. To keep a copy in sync, read with `order=asc` from five minutes before the last `to`, up to an instant that is not in the future, and skip ids that you know: while a part of the service is down, rows appear later. After a longer outage go back by its length.',
    query: logQuery,
    answers: [
      jsonAnswer('LogPage', logPage),
      {
        contentType: 'text/csv; charset=utf-8',
        says: 'The same calls with a header row; `cost` is called `cost_usd` and counts credits all the same.',
      },
    ],
    answerHeaders: {
      'content-disposition': 'Of CSV: the name of the file.',
      'x-truncated': 'Of CSV: `true` where there are more calls.',
      'x-next-cursor': 'Of CSV: the `cursor` of the next calls, where there are more.',
    },
    failures: ['invalid_request', 'permission_denied', 'logs_rate_limited'],
  },
  {
    ...free,
    name: 'sumLogs',
    tag: 'Call log',
    summary: 'Sum up calls by status, day and model.',
    details:
      'At most 365 days. An answer may be a minute old. Filters of single calls are refused here: `model`, `status`, `unit_type`, `error_code`, `session_id` and `ref`.',
    query: logSummaryQuery,
    answers: [jsonAnswer('LogSummary', logSummary)],
    failures: ['invalid_request', 'permission_denied', 'logs_rate_limited'],
  },
  {
    ...free,
    name: 'showLog',
    tag: 'Call log',
    summary: 'Show one call in detail.',
    details:
      'What shaped the call, how each attempt at an upstream went, how the charge came about, and where the time went. Prompts and answers are kept nowhere. Items are there for what is known of the call; more may be added.',
    pathParameters: logDetailPath,
    query: logDetailQuery,
    answers: [jsonAnswer('LogDetail', logDetailAnswer)],
    failures: ['invalid_request', 'permission_denied', 'log_not_found', 'logs_rate_limited'],
  },
]
