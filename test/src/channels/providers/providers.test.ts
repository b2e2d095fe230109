/** Providers: each is its folder, and what presets, paths and strict upstreams do to a request. */
import t from 'tap'
import { CHAT_PROTOCOLS, type ChatProtocol } from '../../../../schemas/config/catalog.ts'
import { findChatAdapter, findCountingAdapter } from '../../../../src/channels/chat/registry.ts'
import { MEDIA_CHANNELS } from '../../../../src/channels/media/registry.ts'
import { PRESETS, PROVIDERS, withPresets } from '../../../../src/channels/providers/presets.ts'
import { listProtocols } from '../../../../src/channels/providers/provider.ts'
import { ChatCompletionsMeter } from '../../../../src/protocols/chat-completions/meter.ts'
import { CHAT_PROVIDERS } from '../../../support/chat-providers.ts'
import { filesUnder, readText, sourceFiles } from '../../../support/source-files.ts'
import { command, noEngines } from '../../cli/support.ts'
import { chatWith } from '../../protocols/request/plain-requests.ts'
import { channelOf, loadChannels } from './support.ts'

t.test('a provider is its folder', async (t) => {
  // A provider is a folder and one line of the registry; no other code knows its name. See docs/extending.md.
  const FOLDER = 'src/channels/providers'

  t.test('each folder is a provider of its name, with one line of the registry', async (t) => {
    const inside = filesUnder(FOLDER).map((path) => path.slice(FOLDER.length + 1).split('/'))
    const folders = new Set(inside.flatMap(([folder = '', ...rest]) => (rest.length > 0 ? folder : [])))
    t.same([...folders].sort(), Object.keys(PROVIDERS).sort())
    const lines = readText(`${FOLDER}/registry.ts`).trimEnd().split('\n').slice(1)
    t.same(
      lines,
      Object.keys(PROVIDERS).map((name) => `export { ${name} } from './${name}/${name}.ts'`),
    )
  })

  t.test('no file outside the folders names a provider or one of its protocols of media', async (t) => {
    /** A package of npm, a service of AWS, and words in the settings of agents: each is something else of the same name. */
    const others = [
      ...["from 'openai'", "service: word.default('bedrock')"],
      ...["['security/auth/selectedType', 'openai']", "['models/name=Tollgate/provider', 'openai']"],
    ]
    const { task: _, ...ofProviders } = MEDIA_CHANNELS
    const names = [...Object.keys(PROVIDERS), ...Object.keys(ofProviders)].join('|')
    const named = new RegExp(`.*(?:(['"\`])(?:${names})\\1|(?:^|[{,(] *)(?:${names})\\??:).*`, 'gm')
    const files = sourceFiles('schemas', 'pipelines', 'src', 'console/src').filter(
      // What the simulated provider can answer like is named by whom it imitates.
      ({ path }) => !path.startsWith(`${FOLDER}/`) && !path.startsWith('src/simulator/'),
    )
    t.not(files.length, 0)
    const found = files.flatMap(({ path, text }) =>
      [...text.matchAll(named)]
        .filter(([line]) => !others.some((other) => line.includes(other)))
        .map(([line]) => `${path}: ${line.trim()}`),
    )
    t.same(found, [])
  })
})

t.test('presets fill what channels leave out', async (t) => {
  /** One protocol of one preset, as `tollgate providers` prints it. */
  interface Row {
    readonly provider: string
    readonly protocol: string
  }

  const CALL = { upstreamModel: 'up', stream: false, query: '' }

  /** Returns the URL and the key's header of a call. */
  function requestOf(fields: string): [string, string] {
    const channel = channelOf(fields)
    const { base, path, headers } = findChatAdapter(channel, channel.protocol as ChatProtocol).request(
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
      for (const protocol of listProtocols(preset)) {
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
    for (const row of rows)
      for (const field of Object.keys(row)) t.match(columns, new RegExp(`\\b${field}\\b`))
  })
})

t.test('models in the path', async (t) => {
  // Platforms whose path names the model: Amazon Bedrock and Vertex AI.
  const PROJECT = 'https://us-east5-aiplatform.googleapis.com/v1/projects/p/locations/us-east5'
  const BODY = '{"model":"up","stream":true,"max_tokens":9,"temperature":1.0,"messages":[]}'

  function sent(fields: string, upstreamModel: string, stream: boolean, beta = '') {
    const channel = channelOf(fields)
    const adapter = findChatAdapter(channel, channel.protocol as ChatProtocol)
    const call = { upstreamModel, stream, query: 'alt=sse' }
    const { base, path, headers } = adapter.request(channel, call)
    const header = (name: string) => (name === 'anthropic-beta' ? beta : '')
    const body = adapter.body?.(Buffer.from(BODY), channel, call, header) ?? Buffer.from(BODY)
    return {
      url: base + path,
      headers: [...headers, ...(adapter.callHeaders?.(header) ?? [])],
      body: String(body),
    }
  }

  t.test('Bedrock', async (t) => {
    const auth = 'provider: bedrock, auth: { type: aws-sigv4, region: eu-west-1 }'
    const streamed = sent(auth, 'anthropic.claude-v1:0', true, 'one, two')
    t.equal(
      streamed.url,
      'https://bedrock-runtime.eu-west-1.amazonaws.com/model/anthropic.claude-v1%3A0/invoke-with-response-stream',
    )
    t.equal(
      streamed.body,
      '{"anthropic_version":"bedrock-2023-05-31","anthropic_beta":["one","two"],"max_tokens":9,"temperature":1.0,"messages":[]}',
    )
    t.notOk(streamed.headers.some(([name]) => name === 'authorization' || name === 'anthropic-version'))
    t.match(sent(auth, 'm', false).url, /\/model\/m\/invoke$/)
    const keyed = sent('provider: bedrock, api_key: k, base_url: "http://127.0.0.1:1"', 'm', false)
    t.same(keyed.headers[0], ['authorization', 'Bearer k'])
  })

  t.test('Vertex', async (t) => {
    const auth = `provider: vertex, base_url: "${PROJECT}", auth: { type: google }`
    t.equal(
      sent(auth, 'gemini-2.5-pro', false).url,
      `${PROJECT}/publishers/google/models/gemini-2.5-pro:generateContent`,
    )
    t.equal(
      sent(auth, 'gemini-2.5-pro', true).url,
      `${PROJECT}/publishers/google/models/gemini-2.5-pro:streamGenerateContent?alt=sse`,
    )
    const messages = sent(`${auth}, protocol: messages`, 'claude@1', true, 'one')
    t.equal(messages.url, `${PROJECT}/publishers/anthropic/models/claude%401:streamRawPredict`)
    t.equal(
      messages.body,
      '{"anthropic_version":"vertex-2023-10-16","stream":true,"max_tokens":9,"temperature":1.0,"messages":[]}',
    )
    t.same(messages.headers.at(-1), ['anthropic-beta', 'one'])
    t.match(sent(`${auth}, protocol: messages`, 'm', false).url, /:rawPredict$/)
  })

  t.test('Bedrock counts for a model without the geography of its profile', async (t) => {
    const channel = channelOf('provider: bedrock, auth: { type: aws-sigv4, region: eu-west-1 }')
    const pathOf = (upstreamModel: string) =>
      findCountingAdapter(channel, 'messages')!.request(channel, { upstreamModel, stream: false, query: '' })
        .path
    for (const geography of ['', 'us.', 'apac.', 'us-gov.', 'global.'])
      t.equal(pathOf(`${geography}anthropic.claude-v1:0`), '/model/anthropic.claude-v1%3A0/count-tokens')
    t.equal(
      pathOf('arn:aws:bedrock:us-east-1:1:x/y'),
      '/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3Ax%2Fy/count-tokens',
    )
    t.equal(findCountingAdapter(channel, 'generate-content'), null)
  })

  t.test('what is missing is named', async (t) => {
    const problems = (fields: string) => {
      const loaded = loadChannels(`  - { id: c, models: { m: up }, ${fields} }\n`)
      return loaded.ok ? [] : loaded.problems.map(({ field, message }) => `${field}: ${message}`)
    }
    t.same(problems('provider: bedrock, api_key: k'), ['channels[0].base_url: is required.'])
    t.same(problems('provider: vertex, auth: { type: google }'), ['channels[0].base_url: is required.'])
    t.same(
      problems('provider: vertex, auth: { type: google }, base_url: "https://aiplatform.googleapis.com"'),
      ['channels[0].base_url: must end in /v1/projects/PROJECT/locations/LOCATION.'],
    )
    const veo = `protocol: veo, auth: { type: google }, base_url: "${PROJECT}"`
    t.same(problems(`provider: vertex, ${veo}, storage_uri: "gs://films/new"`), [])
    t.same(problems(`provider: vertex, ${veo}, storage_uri: "https://films"`), [
      'channels[0].storage_uri: must be the folder of a bucket, such as gs://my-bucket/films.',
    ])
    t.same(problems('provider: gemini, protocol: veo, api_key: k, storage_uri: "gs://films"'), [
      'channels[0].storage_uri: goes with protocol veo of provider vertex only.',
    ])
  })
})

t.test('any API version of the client goes on', async (t) => {
  const channel = channelOf('protocol: messages, base_url: "http://127.0.0.1:1", api_key: k')
  const adapters = [findChatAdapter(channel, 'messages'), findCountingAdapter(channel, 'messages')]
  for (const adapter of adapters)
    for (const [sent, version] of [
      ['2023-01-01', '2023-01-01'],
      ['2026-07-28', '2026-07-28'],
      ['2031-12-31', '2031-12-31'],
      ['newest', 'newest'],
      ['', '2023-06-01'],
    ])
      for (const header of ['anthropic-version', 'vendor-version'])
        t.same(
          adapter?.callHeaders?.((name) => (name === header ? sent! : '')),
          [['anthropic-version', version]],
          `${header}: ${sent}`,
        )
})

t.test('azure', async (t) => {
  const RESOURCE = 'https://r.openai.azure.com/openai'

  function requestOf(fields: string): [string, string] {
    const channel = channelOf(`provider: azure, api_key: k, ${fields}`)
    const protocol = channel.protocol as 'chat-completions' | 'responses'
    const call = { upstreamModel: 'my deployment', stream: true, query: '' }
    const { base, path, headers } = findChatAdapter(channel, protocol).request(channel, call)
    return [base + path, headers[0]!.join(': ')]
  }

  t.test('the newer form has the deployment in the body', async (t) => {
    t.same(requestOf(`base_url: "${RESOURCE}/v1"`), [`${RESOURCE}/v1/chat/completions`, 'api-key: k'])
    t.same(requestOf(`base_url: "${RESOURCE}/v1", protocol: responses`), [
      `${RESOURCE}/v1/responses`,
      'api-key: k',
    ])
  })

  t.test('the older form has it in the path, with a version', async (t) => {
    t.same(requestOf(`base_url: "${RESOURCE}", api_version: 2024-10-21-preview`), [
      `${RESOURCE}/deployments/my%20deployment/chat/completions?api-version=2024-10-21-preview`,
      'api-key: k',
    ])
    t.same(requestOf(`base_url: "${RESOURCE}", api_version: 2025-04-01-preview, protocol: responses`), [
      `${RESOURCE}/responses?api-version=2025-04-01-preview`,
      'api-key: k',
    ])
  })

  t.test('what is missing is named', async (t) => {
    const problems = (fields: string) => {
      const loaded = loadChannels(`  - { id: c, provider: azure, api_key: k, models: { m: up }${fields} }\n`)
      return loaded.ok ? [] : loaded.problems.map(({ field, message }) => `${field}: ${message}`)
    }
    t.same(problems(''), ['channels[0].base_url: is required.'])
    t.same(problems(`, base_url: "${RESOURCE}"`), [
      'channels[0].api_version: is required with this form of base_url, such as 2024-10-21.',
    ])
    t.same(problems(`, base_url: "${RESOURCE}/v1"`), [])
  })

  t.test('a first chunk of filter results is no answer yet, and passes with the answer', async (t) => {
    const meter = new ChatCompletionsMeter({ withholdUsage: true })
    const results = `data: ${JSON.stringify({ choices: [], id: '', model: '', object: '', prompt_filter_results: [{ prompt_index: 0, content_filter_results: { hate: { filtered: false, severity: 'safe' } } }] })}\n\n`
    t.equal(String(meter.push(Buffer.from(results))), results)
    t.equal(meter.isAnswer, false)
    t.equal(meter.firstError, null)
    const chunk = `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: 'Hi' } }] })}\n\n`
    t.equal(String(meter.push(Buffer.from(chunk))), chunk)
    t.equal(meter.isAnswer, true)
  })
})

t.test('strict upstreams get what they take', async (t) => {
  const CALL = { upstreamModel: 'up', stream: false, query: '' }
  const mistral = channelOf('provider: mistral, api_key: k')

  function sent(request: string | object, channel = mistral): string {
    const body = Buffer.from(typeof request === 'string' ? request : JSON.stringify(request))
    const adapter = findChatAdapter(channel, 'chat-completions')
    return (adapter.body?.(body, channel, CALL, () => '') ?? body).toString()
  }

  t.test('ids of tool calls have nine characters, the same for a call and its result', async (t) => {
    const { messages } = JSON.parse(
      sent({
        model: 'up',
        messages: [
          { role: 'user', content: 'hi' },
          {
            role: 'assistant',
            content: '',
            tool_calls: [
              { id: 'call_1234567890abcdef', type: 'function', function: { name: 'f', arguments: '{}' } },
              { id: 'Abc123xyz', type: 'function', function: { name: 'f', arguments: '{}' } },
            ],
          },
          { role: 'tool', tool_call_id: 'call_1234567890abcdef', content: '1' },
          { role: 'tool', tool_call_id: 'Abc123xyz', content: '2' },
        ],
      }),
    )
    const [first, second] = messages[1].tool_calls
    t.match(first.id, /^[A-Za-z0-9]{9}$/)
    t.equal(messages[2].tool_call_id, first.id)
    t.equal(second.id, 'Abc123xyz')
    t.equal(messages[3].tool_call_id, 'Abc123xyz')
  })

  t.test('fields that it does not know are left out, of messages too; a seed has its name', async (t) => {
    t.same(
      JSON.parse(
        sent({
          model: 'up',
          user: 'u',
          logit_bias: {},
          seed: 7,
          temperature: 0.5,
          messages: [
            { role: 'developer', content: 'be brief', name: 'x' },
            { role: 'assistant', content: 'a', refusal: null, annotations: [], reasoning_content: 'r' },
          ],
        }),
      ),
      {
        model: 'up',
        temperature: 0.5,
        random_seed: 7,
        messages: [
          { role: 'system', content: 'be brief' },
          { role: 'assistant', content: 'a' },
        ],
      },
    )
  })

  t.test('numbers keep their spelling', async (t) => {
    t.equal(
      sent('{"model":"up","temperature":1.0,"seed":12345678901234567890,"messages":[]}'),
      '{"model":"up","temperature":1.0,"messages":[],"random_seed":12345678901234567890}',
    )
  })

  t.test('a request for any other upstream is not touched', async (t) => {
    const body = '{ "model": "up", "user": "u", "messages": [] }'
    t.equal(sent(body, channelOf('provider: openai, api_key: k')), body)
    t.equal(sent(body, channelOf('provider: mistral, api_key: k, quirks: []')), body)
  })
})

t.test('fields that change a price are refused', async (t) => {
  // Fields by which each provider changes its price, by its documentation: where the gateway has no price for what they ask
  // for, they are refused before any upstream, and a service tier is asked of the model's prices.
  interface PriceFields {
    /** Refused for every model, with a value that costs. */
    readonly refused: Readonly<Record<string, unknown>>
    /** Words of a tier, for which a model can have a factor: refused where it has none. */
    readonly tiers?: Readonly<Record<string, readonly string[]>>
  }

  // A prediction is left out and named: without it the answer is the same, and only slower.
  const OPENAI: PriceFields = {
    refused: {},
    tiers: { service_tier: ['flex', 'priority', 'scale'] },
  }
  const ANTHROPIC: PriceFields = {
    refused: { speed: 'turbo', inference_geo: 'us', compaction: {}, container: 'container_1' },
    tiers: { service_tier: ['priority'], speed: ['fast'] },
  }
  const GOOGLE: PriceFields = {
    refused: { cachedContent: 'cachedContents/1' },
    tiers: { serviceTier: ['flex', 'priority'] },
  }
  const searches = { enable_search: true, search_options: { forced_search: true } }

  /** By protocol where a provider speaks several. */
  const FIELDS: Readonly<Record<string, Readonly<Partial<Record<ChatProtocol, PriceFields>>>>> = {
    openai: { 'chat-completions': OPENAI, responses: OPENAI },
    azure: {
      'chat-completions': { ...OPENAI, refused: { ...OPENAI.refused, data_sources: [{}] } },
      responses: OPENAI,
    },
    anthropic: { messages: ANTHROPIC, 'chat-completions': OPENAI },
    bedrock: { messages: ANTHROPIC },
    vertex: { messages: ANTHROPIC, 'generate-content': GOOGLE },
    gemini: { 'generate-content': GOOGLE, 'chat-completions': OPENAI },
    deepseek: { 'chat-completions': OPENAI, messages: ANTHROPIC },
    mistral: { 'chat-completions': { refused: {} } },
    groq: {
      'chat-completions': {
        refused: { compound_custom: { tools: {} }, search_settings: { country: 'x' } },
        tiers: { service_tier: ['flex', 'performance'] },
      },
      responses: OPENAI,
    },
    xai: {
      'chat-completions': {
        refused: { search_parameters: { mode: 'on' }, deferred: true },
        tiers: { service_tier: ['priority'] },
      },
      responses: OPENAI,
      messages: ANTHROPIC,
    },
    openrouter: {
      'chat-completions': {
        refused: {
          ...{ provider: { order: ['dear'] }, models: ['dear'], route: 'fallback', transforms: ['x'] },
          ...{ plugins: [{ id: 'web' }], preset: 'dear' },
        },
        tiers: { service_tier: ['flex'] },
      },
      responses: { refused: { plugins: [{ id: 'web' }], provider: { order: ['dear'] } } },
      messages: ANTHROPIC,
    },
    moonshot: { 'chat-completions': { refused: { use_search: true } }, messages: ANTHROPIC },
    qwen: {
      'chat-completions': { refused: { ...searches, enable_code_interpreter: true } },
      messages: ANTHROPIC,
    },
    zhipu: { 'chat-completions': { refused: { web_search: { enable: true } } }, messages: ANTHROPIC },
    minimax: {
      'chat-completions': { refused: { plugins: ['web'] }, tiers: { service_tier: ['priority'] } },
      messages: ANTHROPIC,
    },
    ark: {
      'chat-completions': { refused: { context_id: 'ctx-1' }, tiers: { service_tier: ['fast'] } },
      responses: { refused: { caching: { type: 'enabled' }, context_id: 'ctx-1' } },
    },
  }

  for (const family of CHAT_PROVIDERS)
    t.test(family, async (t) => {
      const spoken = CHAT_PROTOCOLS.filter((protocol) => PRESETS[family]!.baseUrls[protocol] !== undefined)
      t.same(
        Object.keys(FIELDS[family] ?? {}).sort(),
        [...spoken].sort(),
        'each protocol of the preset has a list',
      )
      for (const protocol of spoken) {
        const { refused, tiers = {} } = FIELDS[family]![protocol]!
        for (const [name, value] of Object.entries(refused))
          t.throws(
            () => chatWith(protocol, { [name]: value }),
            { code: 'invalid_request', message: new RegExp(`'${name}' is not valid`) },
            `${protocol} ${name}`,
          )
        for (const [name, words] of Object.entries(tiers))
          for (const word of words)
            t.equal(chatWith(protocol, { [name]: word }).serviceTier, word, `${protocol} ${name} ${word}`)
      }
    })
})

t.test('tools of the vendor', async (t) => {
  const PRICES = { unit: '1M_tokens', input: '1', output: '2' }
  interface Filled {
    readonly models: readonly Record<string, unknown>[]
    readonly channels: readonly Record<string, unknown>[]
  }
  const fill = (provider: object, model: object = {}, top: object = {}): Filled =>
    withPresets({
      ...top,
      models: [{ id: 'm', pricing: PRICES, ...model }],
      channels: [{ id: 'c', api_key: 'k', models: { m: 'up' }, ...provider }],
    }) as Filled
  const OPENAI = { provider: 'openai', protocol: 'responses' }
  const RATE = { credits_per_dollar: '202.2' }

  t.test('the channel offers them at the price in dollars times the rate', async (t) => {
    for (const top of [RATE, { payments: { currency: 'usd', credits_per_unit: 202.2 } }]) {
      const { models, channels } = fill(OPENAI, { capabilities: { vision: true } }, top)
      t.match(channels[0]?.tools, ['web_search', 'code_interpreter', 'computer_use', 'mcp', 'tool_search'])
      t.match(models[0], {
        capabilities: { vision: true, web_search: true, mcp: true },
        pricing: { ...PRICES, server_tools: { web_search: '2.022', code_interpreter: '6.066' } },
      })
    }
    const { models } = fill({ provider: 'anthropic' }, {}, RATE)
    t.match(models[0], {
      capabilities: { url_context: true },
      pricing: { server_tools: { web_search: '2.022' } },
    })
  })

  t.test('what the file says holds', async (t) => {
    const own = {
      ...PRICES,
      server_tools: { web_search: '9' },
      changes: [{ from: '2027-01-01T00:00:00Z', input: '1' }],
    }
    const { models } = fill(OPENAI, { capabilities: { web_search: false }, pricing: own }, RATE)
    t.match(models[0], {
      capabilities: { web_search: false, mcp: true },
      pricing: {
        server_tools: { web_search: '9', code_interpreter: '6.066' },
        changes: [{ input: '1', server_tools: { web_search: '2.022' } }],
      },
    })
    t.same(fill(OPENAI, { pricing: { ...PRICES, server_tool_call: '1' } }, RATE).models[0]?.pricing, {
      ...PRICES,
      server_tool_call: '1',
    })
    const listed = fill({ ...OPENAI, tools: ['web_search'] }, {}, RATE)
    t.same(listed.channels[0]?.tools, ['web_search'])
    t.notOk('capabilities' in (listed.models[0] ?? {}))
  })

  t.test('the cost of the operator has them too', async (t) => {
    const { channels } = fill({ ...OPENAI, cost: { m: PRICES } }, {}, RATE)
    t.match(channels[0]?.cost, { m: { server_tools: { web_search: '2.022' } } })
  })

  t.test('without a rate only what is free or has a price of its own is on', async (t) => {
    const { models, channels } = fill(OPENAI)
    t.same(channels[0]?.tools, ['computer_use', 'mcp', 'tool_search'])
    t.same(models[0]?.pricing, PRICES)
    t.notMatch(models[0]?.capabilities, { web_search: true })
    const priced = fill(OPENAI, { pricing: { ...PRICES, server_tools: { web_search: '3' } } })
    t.same(priced.channels[0]?.tools, ['web_search', 'computer_use', 'mcp', 'tool_search'])
    for (const other of [{ provider: 'openai' }, { ...OPENAI, provider: 'azure' }])
      t.notOk('tools' in (fill(other, {}, RATE).channels[0] ?? {}))
  })
})
