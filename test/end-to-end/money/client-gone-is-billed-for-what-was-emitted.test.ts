/**
 * A client that leaves is charged for what was sent, and for no output before the first token.
 * See docs/failure-modes.md, "Money", rows 5, 6 and 7.
 */
import t from 'tap'
import { serveHttp, textOf } from '../../support/http-server.ts'
import { borrowService } from '../../support/lend-services.ts'
import { eventually, type LentService, until } from '../../support/service.ts'
import {
  balanceOf,
  callConfig,
  estimatedTokens,
  eventsIn,
  readUntil,
  rowOf,
  say,
  textIn,
  traceOf,
  UPSTREAM_KEY,
  upstreamCalls,
} from '../support.ts'

const MESSAGES = say('tell me')
const PROMPT_TOKENS = Math.ceil(JSON.stringify(MESSAGES).length / 4)
const HANGS_AFTER_BYTES = 4000
const PLACEHOLDER = { prompt_tokens: 3, completion_tokens: 1 }

const cost = (promptTokens: number, outputTokens: number) => String(promptTokens + 2 * outputTokens)

/** A provider that never ends: after a first chunk without text, or after it has spoken on beyond a first report. */
async function endlessUpstream(t: { teardown(handler: () => unknown): void }): Promise<string> {
  const chunk = (content: string, more: object = {}) =>
    `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content }, finish_reason: null }], ...more })}\n\n`
  const url = await serveHttp(t, async (request, response) => {
    const { model } = JSON.parse(await textOf(request)) as { model: string }
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    if (model === 'mute') return response.write(chunk(''))
    response.write(chunk('', { usage: PLACEHOLDER }))
    response.write(chunk('twelve chars'))
    return response.write(chunk(', and more'))
  })
  return `${url}/v1`
}

async function startWith(t: Parameters<typeof borrowService>[0], endlessUrl: string): Promise<LentService> {
  const models = {
    hangs: { simulate: `tokens=500,fault=hang:${HANGS_AFTER_BYTES}` },
    silent: { simulate: 'fault=hang' },
    early: { simulate: `tokens=500,usage=early,fault=hang:${HANGS_AFTER_BYTES}` },
    placeholder: { served: false },
    mute: { served: false },
  }
  const channel = [
    '  - id: other',
    '    protocol: chat-completions',
    `    base_url: ${endlessUrl}`,
    `    api_key: ${UPSTREAM_KEY}`,
    '    models: { placeholder: any, mute: mute }',
    '',
  ].join('\n')
  return borrowService(t, callConfig(models) + channel)
}

t.test('a client that goes away', async (t) => {
  const service = await startWith(t, await endlessUpstream(t))
  const { key } = await service.newKey('1000000')
  const stream = (model: string, signal: AbortSignal) =>
    service.chat(
      key,
      { model, messages: MESSAGES, stream: true, stream_options: { include_usage: true } },
      { signal },
    )

  /** Reads so many bytes, leaves, and gives back what was read and the row. */
  async function leaveAfter(model: string, enough: (bytes: Buffer) => boolean) {
    const client = new AbortController()
    const response = await stream(model, client.signal)
    const events = eventsIn((await readUntil(response, enough)).toString('utf8'))
    client.abort()
    return { events, row: await rowOf(service, key, traceOf(response)) }
  }

  await t.test('is billed from the characters that were emitted', async (t) => {
    const { events, row } = await leaveAfter('hangs', (bytes) => bytes.length >= HANGS_AFTER_BYTES)
    const output = estimatedTokens(textIn(events))
    t.ok(output > 0)
    t.match(row, {
      status: 'interrupted',
      error_code: null,
      input_tokens: PROMPT_TOKENS,
      output_tokens: output,
      cost: cost(PROMPT_TOKENS, output),
      attempts_count: 1,
    })
  })

  await t.test('before the first token owes no output, nor after a chunk that says nothing', async (t) => {
    const client = new AbortController()
    const never = stream('silent', client.signal)
    never.catch(() => {})
    const silent = async () =>
      (await upstreamCalls(service)).find(
        ({ model }) => model?.includes('fault=hang') && !model.includes('hang:'),
      )
    const { request_id } = await eventually('the upstream is called', async () => {
      const call = await silent()
      return call === undefined || call.request_id === null ? undefined : call
    })
    client.abort()
    await t.rejects(never)
    const expected = { status: 'interrupted', output_tokens: 0, cost: cost(PROMPT_TOKENS, 0) }
    t.match(await rowOf(service, key, request_id!), expected)
    const left = await eventually('the upstream has seen it leave', async () => {
      const call = await silent()
      return call?.state === 'running' ? undefined : call
    })
    t.equal(left?.state, 'client_closed')

    const { events, row } = await leaveAfter('mute', (bytes) => bytes.includes('\n\n'))
    t.equal(textIn(events), '')
    t.match(row, expected)
  })

  await t.test('is billed by the last report, and for what was said after it', async (t) => {
    const early = await leaveAfter('early', (bytes) => bytes.length >= HANGS_AFTER_BYTES)
    const reported = JSON.parse(early.events.at(-1)!).usage as { completion_tokens: number }
    t.ok(reported.completion_tokens > 1)
    t.match(early.row, {
      status: 'interrupted',
      input_tokens: PROMPT_TOKENS,
      output_tokens: reported.completion_tokens,
      cost: cost(PROMPT_TOKENS, reported.completion_tokens),
    })

    const { row } = await leaveAfter('placeholder', (bytes) => bytes.includes('and more'))
    const said = Math.ceil('twelve chars, and more'.length / 4)
    const output = PLACEHOLDER.completion_tokens + said
    t.match(row, {
      status: 'interrupted',
      input_tokens: PLACEHOLDER.prompt_tokens,
      output_tokens: output,
      cost: cost(PLACEHOLDER.prompt_tokens, output),
    })
  })

  await t.test('leaves a wallet that its rows add up to', async (t) => {
    const rows = await service.logs(key, (found) => found.length === 5)
    const used = rows.reduce((sum, row) => sum + Number(row.cost), 0)
    await until('all is booked', async () => (await balanceOf(service, key)).used === String(used))
    t.ok((await service.database.audits.verifyWallets()).ok)
  })
})
