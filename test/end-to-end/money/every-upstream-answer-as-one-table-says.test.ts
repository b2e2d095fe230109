/**
 * Each way in which an upstream answers, in every pair of protocols, whole and streamed: what the client gets, the row,
 * the charge, what an Idempotency-Key replays and what the breaker counts are what one table says.
 */
import t from 'tap'
import { borrowService } from '../../support/lend-services.ts'
import { type LentService, until } from '../../support/service.ts'
import { ask, baseUrlAt, type ChatProtocol, configOf, PLAIN, WAYS } from '../protocols/support.ts'
import { balanceOf, estimatedTokens, readUntil, rowsOf, traceOf, UPSTREAM_KEY } from '../support.ts'
import {
  ANSWERS,
  type AnswerName,
  ERROR_TEXT,
  hostileUpstream,
  OUTPUT_TOKENS,
  PROMPT_TOKENS,
  streamedAnswer,
  TEXT,
  wholeAnswer,
} from './upstream-answers.ts'

/** How a call ends; `tokens` are what is charged, null for those that are estimated. */
interface Outcome {
  readonly status: number
  readonly row: 'success' | 'error'
  readonly code?: string
  readonly charged: { readonly prompt: number | null; readonly output: number | null } | 'nothing'
}

const billed = (prompt: number | null, output: number | null): Outcome => ({
  status: 200,
  row: 'success',
  charged: { prompt, output },
})
const REPORTED = billed(PROMPT_TOKENS, OUTPUT_TOKENS)
const ESTIMATED = billed(null, null)
const NONE: Outcome = { status: 502, row: 'error', code: 'upstream_error', charged: 'nothing' }
/** Broken behind its first content. */
const BROKEN: Outcome = { ...ESTIMATED, row: 'error', code: 'upstream_error' }

const TABLE: Readonly<Record<AnswerName, { readonly whole: Outcome; readonly streamed: Outcome }>> = {
  reported: { whole: REPORTED, streamed: REPORTED },
  page: { whole: NONE, streamed: NONE },
  empty: { whole: NONE, streamed: NONE },
  'no-content': { whole: NONE, streamed: NONE },
  'no-fields': { whole: NONE, streamed: NONE },
  truncated: { whole: NONE, streamed: BROKEN },
  // As the only event it is the answer of the last channel.
  error: { whole: NONE, streamed: { ...NONE, status: 200 } },
  'late-error': { whole: NONE, streamed: BROKEN },
  'usage-missing': { whole: ESTIMATED, streamed: ESTIMATED },
  interim: { whole: billed(PROMPT_TOKENS, null), streamed: billed(PROMPT_TOKENS, null) },
  // A usage that falls is not believed: what was delivered is billed.
  contradictory: { whole: NONE, streamed: ESTIMATED },
  huge: { whole: REPORTED, streamed: REPORTED },
  cut: { whole: { ...NONE, code: 'upstream_unreachable' }, streamed: BROKEN },
}

const FORMS = ['whole', 'streamed'] as const

interface Case {
  readonly client: ChatProtocol
  readonly upstream: ChatProtocol
  readonly way: (typeof FORMS)[number]
  readonly answer: AnswerName
  /** Also its channel: nobody else's calls are counted there. */
  readonly model: string
}

const CASES: readonly Case[] = WAYS.flatMap(([client, upstream]) =>
  FORMS.flatMap((way) =>
    ANSWERS.map((answer) => ({
      client,
      upstream,
      way,
      answer,
      model: `${client}.${upstream}.${way}.${answer}.${process.pid}`,
    })),
  ),
)

const outcomeOf = ({ answer, way }: Case): Outcome => TABLE[answer][way]

const PROMPT_FIELDS = ['messages', 'contents', 'input']

function tokensOf({ client, way, model }: Case, { charged }: Outcome): { input: number; output: number } {
  if (charged === 'nothing') return { input: 0, output: 0 }
  const { body } = PLAIN[client](model, way === 'streamed')
  const prompt = PROMPT_FIELDS.map((field) => body[field]).find((value) => value !== undefined)
  return {
    input: charged.prompt ?? Math.ceil(JSON.stringify(prompt).length / 4),
    output: charged.output ?? estimatedTokens(TEXT),
  }
}

async function startWith(t: Parameters<typeof borrowService>[0]) {
  const cases = new Map(CASES.map((each) => [each.model, each]))
  const upstream = await hostileUpstream(t, (model) => {
    const { upstream, way, answer } = cases.get(model)!
    return way === 'whole' ? wholeAnswer(upstream, answer) : streamedAnswer(upstream, answer)
  })
  const channels = CASES.map(({ upstream: protocol, model }) => ({
    id: model,
    protocol,
    base_url: baseUrlAt(upstream.url, protocol),
    api_key: UPSTREAM_KEY,
    models: { [model]: model },
  }))
  const models = Object.fromEntries(CASES.map(({ model }) => [model, {}]))
  return { service: await borrowService(t, configOf(models, channels)), hits: upstream.hits }
}

interface Done {
  readonly status: number
  readonly text: string
  readonly trace: string
  readonly isReplayed: boolean
}

async function call(service: LentService, key: string, { client, way, model }: Case): Promise<Done> {
  const headers = { 'idempotency-key': model }
  const response = await ask(service, key, client, model, { stream: way === 'streamed', headers })
  return {
    status: response.status,
    text: String(await readUntil(response)),
    trace: traceOf(response),
    isReplayed: response.headers.get('idempotency-replayed') === 'true',
  }
}

const callAll = (service: LentService, key: string, cases: readonly Case[]): Promise<Done[]> =>
  Promise.all(cases.map((each) => call(service, key, each)))

t.test('every answer of an upstream', async (t) => {
  const { service, hits } = await startWith(t)

  for (const way of FORMS)
    await t.test(way, async (t) => {
      const { key } = await service.newKey('100000000')
      const cases = CASES.filter((each) => each.way === way)
      const first = await callAll(service, key, cases)
      const rows = await rowsOf(
        service,
        key,
        first.map(({ trace }) => trace),
      )
      const { used } = await balanceOf(service, key)
      let sum = 0
      for (const [index, each] of cases.entries()) {
        const outcome = outcomeOf(each)
        const { status, text } = first[index]!
        const { input, output } = tokensOf(each, outcome)
        const cost = input + 2 * output
        sum += cost
        const { status: row, error_code, input_tokens, output_tokens, cost: charged } = rows[index]!
        t.same(
          { status, hasText: text.includes(TEXT), row, error_code, input_tokens, output_tokens, charged },
          {
            status: outcome.status,
            hasText: outcome.charged !== 'nothing',
            row: outcome.row,
            error_code: outcome.code ?? null,
            input_tokens: input,
            output_tokens: output,
            charged: String(cost),
          },
          each.model,
        )
        if (each.answer === 'late-error' && each.way === 'streamed' && each.client === each.upstream)
          t.ok(text.includes(ERROR_TEXT), `${each.model}: the upstream's error is passed on`)
      }
      t.equal(Number(used), sum, 'the wallet has paid what the rows say')

      const second = await callAll(service, key, cases)
      for (const [index, each] of cases.entries()) {
        const { model } = each
        const isAnswer = outcomeOf(each).row === 'success'
        const { isReplayed, text } = second[index]!
        t.same(
          { isReplayed, hits: hits.get(model), isSame: isReplayed && text === first[index]!.text },
          { isReplayed: isAnswer, hits: isAnswer ? 1 : 2, isSame: isAnswer },
          `${model}: replayed`,
        )
      }
    })

  await t.test('counts for its channel', async (t) => {
    const isCounted = (metrics: string, { model, ...each }: Case) => {
      const isAnswer = outcomeOf({ model, ...each }).row === 'success'
      const [outcome, count] = isAnswer ? ['success', 1] : ['failed', 2]
      return metrics.includes(
        `tollgate_channel_attempts_total{channel="${model}",outcome="${outcome}"} ${count}\n`,
      )
    }
    const read = async () => (await fetch(`${service.baseUrl}/metrics`)).text()
    const miscounted = async () => {
      const metrics = await read()
      return CASES.filter((each) => !isCounted(metrics, each)).map(({ model }) => model)
    }
    // Gateways tell each other what they have counted.
    await until('all is counted', async () => (await miscounted()).length === 0).catch(() => undefined)
    t.same(await miscounted(), [])
  })
})
