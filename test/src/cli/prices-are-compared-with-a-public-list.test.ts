import { join } from 'node:path'
import t from 'tap'
import { configFile } from '../../../schemas/config/file.ts'
import { readList } from '../../../src/cli/config/price-list-source.ts'
import type { Wiring } from '../../../src/cli/wiring.ts'
import { readPriceList } from '../../../src/core/pricing/price-list.ts'
import { serveHttp } from '../../support/http-server.ts'
import { commandsOn, noEngines } from './support.ts'

const LITELLM = {
  sample_spec: { max_tokens: 'a text' },
  'deepseek/deepseek-chat': {
    input_cost_per_token: 2.8e-7,
    output_cost_per_token: 4.2e-7,
    cache_read_input_token_cost: 2.8e-8,
    litellm_provider: 'deepseek',
  },
  'claude-x': {
    input_cost_per_token: 3e-6,
    output_cost_per_token: 0.000015,
    cache_creation_input_token_cost: 3.75e-6,
  },
}
const MODELS_DEV = {
  deepseek: {
    id: 'deepseek',
    models: {
      'deepseek-chat': { id: 'deepseek-chat', cost: { input: 0.28, output: 0.42, cache_read: 0.028 } },
    },
  },
  reseller: { id: 'reseller', models: { 'claude-x': { cost: { input: 4, output: 16 } } } },
  anthropic: {
    id: 'anthropic',
    models: { 'claude-x': { cost: { input: 3, output: 15, cache_write: 3.75 } } },
  },
}

const config = configFile.parse({
  models: [
    { id: 'deep', pricing: { unit: '1M_tokens', input: '0.28', output: '0.5' } },
    { id: 'claude', pricing: { unit: '1M_tokens', input: '3', output: '15' } },
    { id: 'own', pricing: { unit: '1M_tokens', input: '1', output: '1' } },
    { id: 'film', endpoint_type: 'videos_generations', pricing: { unit: 'second', per_unit: '1' } },
  ],
  channels: [
    {
      id: 'd',
      provider: 'deepseek',
      protocol: 'chat-completions',
      base_url: 'https://d.test/v1',
      models: { deep: 'deepseek-chat', own: 'own-model' },
      cost: { deep: { unit: '1M_tokens', input: '0.28', output: '0.42', cached_input: '0.028' } },
    },
    {
      id: 'c',
      provider: 'anthropic',
      protocol: 'messages',
      base_url: 'https://c.test',
      models: { claude: 'claude-x' },
    },
  ],
})

const wiringWith = (list: object): Wiring => ({
  ...noEngines,
  loadConfig: () => ({ file: 'tollgate.yaml', config, problems: [], warnings: [] }),
  readList: async () => JSON.stringify(list),
})

t.test('both formats propose the same changes, exact to the last digit', async (t) => {
  for (const list of [LITELLM, MODELS_DEV]) {
    const { json } = commandsOn(wiringWith(list))
    t.same(await json('catalog', 'diff', 'prices.json'), {
      changes: [
        {
          model: 'deep',
          channel: null,
          listed_as: 'deepseek/deepseek-chat',
          price: 'output',
          now: '0.5',
          listed: '0.42',
        },
        {
          model: 'deep',
          channel: null,
          listed_as: 'deepseek/deepseek-chat',
          price: 'cached_input',
          now: null,
          listed: '0.028',
        },
      ],
      unlisted: ['own'],
    })
  }
})

t.test('a list is read from a file, and from a URL at a public address', async (t) => {
  const base = await serveHttp(t, (request, response) => {
    response.statusCode = request.url === '/prices.json' ? 200 : 404
    response.end(JSON.stringify(LITELLM))
  })
  const file = join(t.testdir({ 'prices.json': JSON.stringify(LITELLM) }), 'prices.json')
  const reading = (isAllowed?: () => boolean) =>
    commandsOn({
      ...wiringWith({}),
      readList: (source) => readList(source, isAllowed && { isAllowed }),
    })
  const expected = await commandsOn(wiringWith(LITELLM)).json('catalog', 'diff', 'prices.json')
  t.same(await reading().json('catalog', 'diff', file), expected)
  t.same(await reading(() => true).json('catalog', 'diff', `${base}/prices.json`), expected)
  t.match(
    await reading(() => true).refused('catalog', 'diff', `${base}/gone.json`),
    /cannot be fetched: its server answered with status 404/,
  )
  t.match(
    await reading().refused('catalog', 'diff', 'gone.json'),
    /The price list gone.json cannot be read: there is no such file\./,
  )
  t.match(
    await reading().refused('catalog', 'diff', `${base}/prices.json`),
    /cannot be reached at a public address/,
  )
})

t.test('the changes are YAML', async (t) => {
  const { text } = commandsOn(wiringWith(LITELLM))
  t.equal(
    await text('catalog', 'diff', 'prices.json', '--per-usd', '2'),
    [
      'models:',
      '  - id: "deep" # listed as deepseek/deepseek-chat',
      '    pricing:',
      '      input: "0.56" # now "0.28"',
      '      output: "0.84" # now "0.5"',
      '      cached_input: "0.056" # now not set',
      '  - id: "claude" # listed as claude-x',
      '    pricing:',
      '      input: "6" # now "3"',
      '      output: "30" # now "15"',
      '# not in the list: own',
      '',
    ].join('\n'),
  )
})

t.test('costs of channels are compared on request', async (t) => {
  const { json } = commandsOn(wiringWith(LITELLM))
  const { changes } = (await json('catalog', 'diff', 'prices.json', '--cost')) as { changes: object[] }
  t.match(changes, [
    { model: 'claude', channel: 'c', price: 'input', now: null, listed: '3' },
    { model: 'claude', channel: 'c', price: 'output', now: null, listed: '15' },
  ])
  t.equal(changes.length, 2)
})

t.test('a list that is none is refused', async (t) => {
  const { refused } = commandsOn(wiringWith({ a: { b: 1 } }))
  t.match(await refused('catalog', 'diff', 'x.json'), /no price list in the format of LiteLLM or models.dev/)
  t.throws(() => readPriceList('<html>'), /not JSON/)
})

t.test('names that providers price differently are not guessed', async (t) => {
  const list = readPriceList(JSON.stringify(MODELS_DEV))
  t.equal(list.get('claude-x'), null)
  t.not(list.get('anthropic/claude-x'), null)
})
