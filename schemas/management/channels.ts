/** Operations of channels. */
import { z } from 'zod'
import { STRATEGIES } from '../config/catalog.ts'
import { BREAKER_STATES, CHANNEL_STATES, channelReport, processReport } from '../config/channel-report.ts'
import { amountText, instantText, operation, toListSchema } from './operation.ts'

const count = z.int().min(0)
const { last_error, latency_p50_ms, latency_p99_ms } = channelReport.shape

const seenByProcess = channelReport
  .omit({ channel: true })
  .extend(processReport.omit({ channels: true }).shape)

const channelSchema = z.object({
  id: z.string(),
  provider: z.string().nullable().describe('The preset that it uses; null without one.'),
  protocol: z.string(),
  base_url: z.string(),
  models: z.record(z.string(), z.string()).describe("Model ids, each with the upstream's name of it."),
  priority: z.number(),
  weight: z.number(),
  strategies: z
    .array(z.enum(STRATEGIES))
    .describe('The orders in which its models choose among channels of one priority.'),
  keys: z
    .array(
      z.object({
        position: z.int(),
        tail: z.string().describe('The last characters of the key.'),
        resting_until: instantText.nullable().describe('Until then it is not used: the upstream refused it.'),
        refusals: count.describe('Calls that the upstream refused for this key, in all processes.'),
      }),
    )
    .describe('Of a channel with several keys; the longest rest of all processes.'),
  configured: z
    .boolean()
    .describe('False: its `api_key` or a secret of its `auth` is empty, so it takes no calls.'),
  state: z
    .enum(CHANNEL_STATES)
    .describe(
      '`paused` and `draining`: no new calls; those under way go on. A draining one is to be removed.',
    ),
  held_by: z.string().nullable().describe('Who paused or drains it.'),
  held_since: instantText.nullable(),
  drained: z.boolean().describe('No new calls, none under way, and no open task: it can be removed.'),
  breaker: z.enum(BREAKER_STATES).nullable().describe('The worst of all processes; null where none answers.'),
  in_flight: count.describe('Attempts under way.'),
  open_tasks: count,
  recent_attempts: count.describe('Of the last five minutes.'),
  recent_failures: count.describe('Of them, those that failed by the fault of the channel.'),
  error_rate: z.number().nullable().describe('recent_failures / recent_attempts; null without attempts.'),
  latency_p50_ms: latency_p50_ms.describe('To the first byte, in the slowest process.'),
  latency_p99_ms,
  last_error,
  processes: z.array(seenByProcess).describe('What each gateway and task worker reports of it.'),
})

const shown = { name: 'Channel', schema: channelSchema } as const
const input = z.object({ id: z.string() })

const HELD_COLUMNS = 'id state drained in_flight open_tasks'
const ofOperators = { scope: 'admin', allows: 'operators' } as const

export const listChannels = operation('listChannels', {
  ...ofOperators,
  summary: 'List the channels with their state in every running process.',
  input: z.object({}),
  answer: {
    name: 'ChannelList',
    schema: toListSchema(channelSchema),
  },
})

export const showChannel = operation('showChannel', {
  ...ofOperators,
  summary: 'Show a channel with its state in every running process.',
  input,
  answer: shown,
})

export const pauseChannel = operation('pauseChannel', {
  ...ofOperators,
  summary: 'Stop sending new calls to a channel, within a second. Calls and tasks under way continue.',
  input,
  answer: shown,
  commands: [{ words: 'channels pause', columns: HELD_COLUMNS }],
})

export const drainChannel = operation('drainChannel', {
  ...ofOperators,
  summary:
    'Stop sending new calls to a channel that is to be removed. `drained` becomes true when nothing is under way.',
  input,
  answer: shown,
  commands: [{ words: 'channels drain', columns: HELD_COLUMNS }],
})

export const resumeChannel = operation('resumeChannel', {
  ...ofOperators,
  summary: 'Send new calls to a channel again, within a second.',
  input,
  answer: shown,
  commands: [{ words: 'channels resume', columns: HELD_COLUMNS }],
})

export const testChannel = operation('testChannel', {
  ...ofOperators,
  summary:
    'Send the smallest possible call to a channel, paused or not, and show what it costs. No account is charged.',
  details:
    'The provider charges it like every other call. The circuit breaker stays as it is, and the call log gets no row.',
  input: z.object({
    id: z.string(),
    model: z.string().optional().describe('Model to call. Default: the first of the channel.'),
  }),
  answer: {
    name: 'ChannelTest',
    schema: z.object({
      id: z.string(),
      model: z.string(),
      upstream_model: z.string(),
      ok: z.boolean(),
      status: z.int().nullable().describe('HTTP status of the upstream; null without an answer.'),
      latency_ms: z.number(),
      input_tokens: count,
      output_tokens: count,
      cost: amountText.describe('What the call would cost a customer.'),
      upstream_cost: amountText
        .nullable()
        .describe('What it costs the operator; null where the channel has no cost for the model.'),
      error: z.string().nullable(),
    }),
  },
  commands: [
    {
      words: 'channels test',
      summary:
        'Send the smallest possible call to a channel and show what it costs. Exit code 1 if it fails.',
    },
  ],
})
