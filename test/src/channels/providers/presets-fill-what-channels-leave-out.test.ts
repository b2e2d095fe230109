import t from 'tap'
import type { ChatProtocol } from '../../../../schemas/config/catalog.ts'
import { chatAdapterOf } from '../../../../src/channels/chat/registry.ts'
import { PRESETS } from '../../../../src/channels/providers/presets.ts'
import { protocolsOf } from '../../../../src/channels/providers/provider.ts'
import { command, noEngines } from '../../cli/support.ts'
import { channelOf, loadChannels } from './support.ts'

/** One protocol of one preset, as `tollgate providers` prints it. */
interface Row {
  readonly provider: string
  readonly protocol: string
}

const CALL = { upstreamModel: 'up', stream: false, query: '' }

/** Returns the URL and the key's header of a call. */
function requestOf(fields: string): [string, string] {
  const channel = channelOf(fields)
  const { base, path, headers } = chatAdapterOf(channel, channel.protocol as ChatProtocol).request(
    channel,
    CALL,
  )
  return [base + path, headers[0]!.join(': ')]
}

t.test('a provider and a key are a whole channel', async (t) => {
  const urls: Readonly<Record<string, readonly [url: string, key: string]>> = {
    openai: ['https://api.openai.com/v1/chat/completions', 'authorization: Bearer k'],
    anthropic: ['https://api.anthropic.com/v1/messages', 'x-api-key: k'],
    gemini: [
      'https://generativelanguage.googleapis.com/v1beta/models/up:generateContent',
      'x-goog-api-key: k',
    ],
    deepseek: ['https://api.deepseek.com/v1/chat/completions', 'authorization: Bearer k'],
    mistral: ['https://api.mistral.ai/v1/chat/completions', 'authorization: Bearer k'],
    groq: ['https://api.groq.com/openai/v1/chat/completions', 'authorization: Bearer k'],
    xai: ['https://api.x.ai/v1/chat/completions', 'authorization: Bearer k'],
    openrouter: ['https://openrouter.ai/api/v1/chat/completions', 'authorization: Bearer k'],
    moonshot: ['https://api.moonshot.ai/v1/chat/completions', 'authorization: Bearer k'],
    qwen: [
      'https://dashscope-intl.aliyuncs.com/compatible-mode/v1/chat/completions',
      'authorization: Bearer k',
    ],
    zhipu: ['https://open.bigmodel.cn/api/paas/v4/chat/completions', 'authorization: Bearer k'],
    minimax: ['https://api.minimax.io/v1/chat/completions', 'authorization: Bearer k'],
    ark: ['https://ark.cn-beijing.volces.com/api/v3/chat/completions', 'authorization: Bearer k'],
  }
  for (const [provider, expected] of Object.entries(urls))
    t.same(requestOf(`provider: ${provider}, api_key: k`), expected, provider)
})

t.test('other protocols of a provider have their own base and header', async (t) => {
  t.same(requestOf('provider: deepseek, protocol: messages, api_key: k'), [
    'https://api.deepseek.com/anthropic/v1/messages',
    'x-api-key: k',
  ])
  t.same(requestOf('provider: moonshot, protocol: messages, api_key: k'), [
    'https://api.moonshot.ai/anthropic/v1/messages',
    'authorization: Bearer k',
  ])
  t.same(requestOf('provider: openai, protocol: responses, api_key: k'), [
    'https://api.openai.com/v1/responses',
    'authorization: Bearer k',
  ])
  t.same(requestOf('provider: gemini, protocol: chat-completions, api_key: k'), [
    'https://generativelanguage.googleapis.com/v1beta/openai/chat/completions',
    'authorization: Bearer k',
  ])
})

t.test('every protocol of every preset is a sound channel', async (t) => {
  for (const [provider, preset] of Object.entries(PRESETS))
    for (const protocol of protocolsOf(preset)) {
      const loaded = loadChannels(
        `  - { id: c, provider: ${provider}, protocol: ${protocol}, api_key: k, models: { m: up } }\n`,
      )
      if (typeof preset.baseUrls[protocol] === 'string') t.same(loaded.ok, true, `${provider} ${protocol}`)
    }
})

t.test('what a channel says itself stands', async (t) => {
  const own = channelOf(
    'provider: mistral, api_key: k, base_url: "http://127.0.0.1:1/v1", output_limit_field: null, key_header: api-key',
  )
  t.equal(own.base_url, 'http://127.0.0.1:1/v1')
  t.equal(own.output_limit_field, null)
  t.equal(own.key_header, 'api-key')
  t.equal(channelOf('provider: mistral, api_key: k, quirks: []').quirks.length, 0)
  t.equal(channelOf('provider: mistral, api_key: k').output_limit_field, 'max_tokens')
  t.equal(channelOf('provider: openai, api_key: k').output_limit_field, 'max_completion_tokens')
})

t.test('a protocol that the provider does not speak needs its own base URL', async (t) => {
  const loaded = loadChannels(
    '  - { id: c, provider: mistral, protocol: messages, api_key: k, models: { m: up } }\n',
  )
  t.match(loaded, { ok: false, problems: [{ field: 'channels[0].base_url', message: 'is required.' }] })
})

t.test('a wrong provider is named with the nearest one', async (t) => {
  const loaded = loadChannels('  - { id: c, provider: mistrall, api_key: k, models: { m: up } }\n')
  if (loaded.ok) throw new Error('the file was taken')
  t.match(
    loaded.problems.map(({ field, message }) => `${field} ${message}`).join('\n'),
    /Did you mean "mistral"\?/,
  )
})

t.test('providers are listed with what they fill in', async (t) => {
  const { code, stdout } = await command(['providers', '--json'], noEngines)
  t.equal(code, 0)
  const rows: Row[] = JSON.parse(stdout)
  t.same([...new Set(rows.map(({ provider }) => provider))], Object.keys(PRESETS))
  const row = (wanted: string, spoken: string) =>
    rows.find(({ provider, protocol }) => provider === wanted && protocol === spoken)
  t.match(row('mistral', 'chat-completions'), {
    title: 'Mistral',
    base_url: 'https://api.mistral.ai/v1',
    key_header: null,
    output_limit_field: 'max_tokens',
    quirks: ['nine-character-tool-call-ids', 'known-fields-only', 'no-usage-option'],
    keeps_responses_days: null,
  })
  t.match(row('moonshot', 'messages'), {
    key_header: 'authorization',
    output_limit_field: null,
    quirks: { length: 0 },
  })
  t.match(row('openai', 'responses'), { keeps_responses_days: 30, keeps_conversations: true })
  t.match(row('vertex', 'messages'), { base_url: "made of the channel's own fields" })
  const columns = (await command(['providers'], noEngines)).stdout.split('\n')[0]!
  for (const row of rows) for (const field of Object.keys(row)) t.match(columns, new RegExp(`\\b${field}\\b`))
})
