/** Operations that show the running installation: its processes and engines, and calls as they end. */

import { z } from 'zod'
import { logRow } from '../call-log/columns.ts'
import { commaList } from '../call-log/query.ts'
import { callStatus } from '../call-log/row.ts'
import { amountText, instantText, operation } from './operation.ts'

const processSchema = z.object({
  process: z.string().describe('`gateway 0`, `settler`, `tasks`.'),
  host: z.string(),
  pid: z.int(),
  version: z.string(),
  started_at: instantText,
  calls_in_flight: z.int(),
  is_draining: z.boolean(),
})

const engineSchema = z.object({
  name: z.string(),
  is_up: z.boolean().describe('Whether it answers every process that uses it.'),
})

const installation = z.object({
  at: instantText,
  processes: z.array(processSchema),
  engines: z.array(engineSchema),
  calls_in_flight: z.int(),
  reserved: amountText.describe('Estimates of the calls in flight, in credits.'),
  settlement_lag_seconds: z.number().describe('Age of the oldest settlement that is not booked.'),
  unbooked_settlements: z.int(),
  log_lag_seconds: z.number().describe('Age of the oldest booked call that is not in the call log.'),
})

export const showInstallation = operation('showInstallation', {
  summary: 'Show the running processes and the engines, with what is in flight and what lags.',
  input: z.object({}),
  answer: { name: 'Installation', schema: installation },
  scope: 'read',
  allows: 'operators',
})

export const overview = installation.extend({
  seconds: z.number().describe('Length of the interval that the next fields count.'),
  calls: z.int(),
  failed: z.int(),
  cost: amountText,
  latency_p50_ms: z.number().nullable(),
  latency_p99_ms: z.number().nullable(),
})
export type Overview = z.infer<typeof overview>

export const watchInstallation = operation('watchInstallation', {
  summary: 'Watch the installation: an event `overview` every two seconds.',
  details: 'The stream ends when the session or token does. Comments keep the connection alive.',
  input: z.object({}),
  answer: { name: 'Overview', schema: overview },
  scope: 'read',
  allows: 'operators',
  isStream: true,
})

export const liveCall = logRow.omit({
  object: true,
  id: true,
  key_name: true,
  key_prefix: true,
  attempts: true,
  result_urls: true,
  result_expires_at: true,
})
export type LiveCall = z.infer<typeof liveCall>

/** What a stream of calls filters by. */
const watched = {
  key_id: z.string().optional(),
  model: z.string().optional(),
  status: commaList(callStatus).optional().describe('One status or several, separated by commas.'),
}

export const watchCalls = operation('watchCalls', {
  summary: 'Watch the calls of an account: an event `call` for each that ends, before it is in the call log.',
  details:
    'An event `gap` says that events are missing: read the list again. It comes first when the connection was cut, and ' +
    'when the reader is too slow. A member of an organization sees only calls made with their own keys.',
  input: z.object({ account_id: z.string(), ...watched }),
  answer: { name: 'LiveCall', schema: liveCall },
  scope: 'read',
  allows: ['owner', 'admin', 'billing', 'member'],
  isStream: true,
})

export const liveInstallationCall = liveCall.extend({
  key_name: z.string().nullable(),
  account_id: z.string(),
  account_name: z.string().nullable(),
  channel_id: z.string().nullable().describe('null: no channel was called.'),
})
export type LiveInstallationCall = z.infer<typeof liveInstallationCall>

export const watchAllCalls = operation('watchAllCalls', {
  summary:
    'Watch the calls of all accounts: an event `call` for each that ends, before it is in the call log.',
  details:
    'An event `gap` says that events are missing: read the list again. Names are null while PostgreSQL does not answer.',
  input: z.object({ account_id: z.string().optional(), channel_id: z.string().optional(), ...watched }),
  answer: { name: 'LiveInstallationCall', schema: liveInstallationCall },
  scope: 'read',
  allows: 'operators',
  isStream: true,
})
