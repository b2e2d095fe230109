import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { MEDIA_PROTOCOLS } from '../../../src/channels/media/registry.ts'
import { loadConfigFile } from '../../../src/config/load.ts'

/** Loads a text as `c.yaml` and gives its problems as `line:column field: message`. */
function problemsOf(test: typeof t | Test, text: string): string[] {
  const path = join(test.testdir(), 'c.yaml')
  writeFileSync(path, text)
  const result = loadConfigFile(path, {})
  if (result.ok) return []
  return result.problems.map(({ file, line, column, field, message }) => {
    test.equal(file, path)
    return `${line}:${column} ${field}: ${message}`
  })
}

const priced = 'pricing: { unit: 1M_tokens, input: 1, output: 2 }'
const model = (id: string, more = '') => `models:\n  - id: ${id}\n    ${more}${priced}\n`
const channel = (fields: string) => `${model('a')}channels:\n  - { id: x, api_key: k, ${fields} }\n`

t.test('all problems of one file are named at once, in the order of its lines', async (t) => {
  t.same(
    problemsOf(
      t,
      `
limits: { requests_per_minut: 3, concurrency: many }
models:
  - id: a
    aliases: [b]
    max_output_tokens: 10
    default_max_tokens: 20
    pricing: { unit: 1M_tokens, input: abc }
  - id: b
channels:
  - id: x
    protocol: chat-completion
    base_url: ftp://example.com
    models: { c: upstream }
`,
    ),
    [
      '2:11 limits.requests_per_minut: There is no such field. Did you mean "requests_per_minute"?',
      '2:47 limits.concurrency: must be a number, not a string.',
      '5:15 models[0].aliases[0]: "b" is already the id of models[1].',
      '7:25 models[0].default_max_tokens: must be at most max_output_tokens, which is 10.',
      '8:5 models[0].pricing.output: is required with unit 1M_tokens.',
      '8:40 models[0].pricing.input: A price must be a decimal number like "19.41", not "abc".',
      '9:5 models[1].pricing: is required: a model that can be called has a price. callable: false lists it without one.',
      `12:15 channels[0].protocol: must be one of chat-completions, messages, generate-content, responses, ${MEDIA_PROTOCOLS.join(', ')}. Did you mean "chat-completions"?`,
      '13:15 channels[0].base_url: must be a URL that starts with http:// or https://.',
      '14:15 channels[0].models.c: There is no model "c" in the catalog.',
    ],
  )
})

t.test('a name stands for one model only', async (t) => {
  t.same(
    problemsOf(
      t,
      `models:\n- { id: a, aliases: [a, x], ${priced} }\n- { id: b, aliases: [x], ${priced} }\n- { id: b, ${priced} }\n`,
    ),
    [
      '2:22 models[0].aliases[0]: "a" is already the id of models[0].',
      '3:22 models[1].aliases[0]: "x" is already an alias of models[0].',
      '4:9 models[2].id: "b" is already the id of models[1].',
    ],
  )
})

t.test('prices go with their unit', async (t) => {
  const broken = (pricing: string, more = '') =>
    problemsOf(t, `models: [{ id: a, ${more} pricing: { ${pricing} } }]`).map((line) =>
      line.replace(/^\d+:\d+ models\[0\]\.pricing\.?/, ''),
    )
  t.same(broken('unit: 1M_tokens, input: 1, output: 1'), [])
  t.same(broken('unit: second, per_unit: 4', 'endpoint_type: videos_generations,'), [])
  t.same(broken('unit: second, variants: { fast: 4 }', 'endpoint_type: videos_generations,'), [])
  t.same(broken('unit: second, input: 4', 'endpoint_type: videos_generations,'), [
    'per_unit: is required with unit second, or at least one of variants.',
    'input: does not go with unit second.',
  ])
  t.same(broken('unit: 1M_tokens, input: 1, output: 1, per_unit: 1'), [
    'per_unit: does not go with unit 1M_tokens.',
  ])
  t.match(broken('unit: image, per_unit: 1'), [/^unit: must be 1M_tokens for a chat model/])
  t.same(broken('unit: 1M_tokens, input: -1, output: 1'), ['input: A price is never negative.'])
  t.match(broken('unit: 1M_tokens, input: 1, output: 1, discount: 1.2'), [/^discount: must be above 0 and/])
  t.match(broken('unit: 1M_tokens, input: 1, output: 1, discount: 0'), [/^discount: must be above 0 and/])
  t.same(broken('unit: 1M_tokens, input: 1, output: 1, discount: 1'), [])
  t.same(broken('unit: 1M_tokens, input: 1, output: 1, discount: 1, discount_until: 2026-12-31'), [
    'discount_until: must be an instant such as 2026-12-31T00:00:00Z.',
  ])
  t.same(broken('unit: 1M_tokens, input: 1, output: 1, discount_until: 2026-12-31T00:00:00Z'), [
    'discount_until: needs a discount that it ends.',
  ])
  const tier = (from: number) => `{ from_prompt_tokens: ${from}, input: 1, output: 1 }`
  t.same(broken(`unit: 1M_tokens, input: 1, output: 1, tiers: [${tier(10)}, ${tier(10)}]`), [
    'tiers[1].from_prompt_tokens: must be more than 10 of the tier before it: tiers must ascend.',
  ])
})

t.test('base_url ends where the gateway begins to append', async (t) => {
  const isTaken = (protocol: string, url: string) =>
    problemsOf(t, channel(`protocol: ${protocol}, base_url: "${url}", models: { a: b }`)).length === 0
  const cases: [protocol: string, good: string[], bad: string[]][] = [
    [
      'chat-completions',
      ['/v1', '/v1/', '/api/paas/v4', '/v1beta/openai'],
      ['', '/v1/chat/completions', '/v1?a=b', '/openai'],
    ],
    ['responses', ['/v1'], ['', '/v1/responses']],
    ['messages', ['', '/', '/anthropic'], ['/v1', '/v1/messages']],
    ['generate-content', [''], ['/v1beta', '/v1beta/models']],
    ['openai-images', ['/v1'], ['', '/v1/images/generations']],
    ['ark-video', ['/api/v3'], ['/v3', '']],
    ['elevenlabs', [''], ['/v1']],
    ['suno', [''], ['/api/v1']],
    ['fal', [''], ['/v1']],
    ['replicate', ['/v1'], ['', '/v1/predictions']],
    ['kling', ['/v1'], ['']],
    ['veo', [''], ['/v1beta', '/v1beta/models']],
    ['minimax-video', ['/v1'], ['', '/v1/video_generation']],
    ['dashscope', ['/api/v1'], ['', '/compatible-mode/v1']],
    ['runway', ['/v1'], ['', '/v1/tasks']],
    ['task', ['', '/anything/v7'], []],
  ]
  for (const [protocol, good, bad] of cases) {
    for (const path of good) t.ok(isTaken(protocol, `https://example.com${path}`), `${protocol} ${path}`)
    for (const path of bad) t.notOk(isTaken(protocol, `https://example.com${path}`), `${protocol} ${path}`)
  }
  t.notOk(isTaken('task', 'https://user:password@example.com'), 'credentials belong elsewhere')
})

t.test('a channel is refused for names, headers and ids that cannot be', async (t) => {
  const good = 'protocol: task, base_url: "https://example.com"'
  t.same(problemsOf(t, channel(`${good}, models: { a: b }, headers: { x-extra: "1" }`)), [])
  t.match(problemsOf(t, channel(`${good}, models: { b: c }`)), [/models\.b: There is no model "b"/])
  t.match(problemsOf(t, channel(`${good}, models: { a: b }, headers: { Content-Length: "1" }`)), [
    /headers\.Content-Length: is written by the gateway/,
  ])
  t.match(problemsOf(t, channel(`${good}, models: { a: b }, headers: { x-extra: "a\\nb" }`)), [
    /headers\.x-extra: must be printable ASCII/,
  ])
  t.match(
    problemsOf(
      t,
      `${model('a', 'aliases: [b]\n    ')}channels:\n- { id: x, ${good}, models: { b: c } }\n- { id: x, ${good}, models: {} }\n`,
    ),
    [
      /models\.b: "b" is an alias: name the model by its id, "a"/,
      /id: "x" is already the id of channels\[0\]/,
    ],
  )
})

t.test('what is not YAML, or not a configuration, is refused with its place', async (t) => {
  t.match(problemsOf(t, 'models: [\n'), [/^2:1 : /])
  t.match(problemsOf(t, 'limits: {}\nlimits: {}\n'), [/^2:1 : .*unique/])
  t.match(problemsOf(t, 'a: 1\n---\na: 2\n'), [/multiple documents/])
  t.match(problemsOf(t, '- 1\n'), [/^1:1 : must be a group of fields, not a list/])
  t.match(problemsOf(t, '# nothing yet\n'), [/must be a group of fields/])
  t.match(problemsOf(t, ''), [/The file is empty/])
  t.match(problemsOf(t, 'a: &a [*a]\n'), [/nested too deeply/])
  t.match(problemsOf(t, 'a: !secret b\n'), [/Unresolved tag/])
  const bomb = ['a: &a [1, 1, 1, 1, 1, 1, 1, 1]']
  for (const [one, two] of ['ab', 'bc', 'cd', 'de', 'ef', 'fg'].map((pair) => pair.split('')))
    bomb.push(`${two}: &${two} [${Array(8).fill(`*${one}`).join(', ')}]`)
  t.match(problemsOf(t, bomb.join('\n')), [/aliases unfold to too much/])
  const missing = loadConfigFile(join(t.testdir(), 'nowhere.yaml'), {})
  t.match(missing, { ok: false, digest: '', problems: [{ line: 1, message: 'There is no such file.' }] })
  t.match(loadConfigFile(t.testdir(), {}), { ok: false, problems: [{ message: /It cannot be read/ }] })
})

const media = (fields: string) => `models:\n  - { id: a, endpoint_type: images_generations, ${fields} }\n`

t.test('prices of media fit their endpoint', async (t) => {
  const typed = (type: string, unit: string) =>
    problemsOf(t, `models:\n  - { id: a, endpoint_type: ${type}, pricing: { unit: ${unit}, per_unit: 1 } }\n`)
  t.same(typed('audio_speech', '1000_characters'), [])
  t.same(typed('videos_generations', 'second'), [])
  t.same(typed('clip_compose', 'task'), [])
  const misfit = (type: string, column: number, units: string) => [
    `2:${column} models[0].pricing.unit: must be one of ${units} for endpoint_type ${type}.`,
  ]
  t.same(typed('audio_voices', 'second'), misfit('audio_voices', 60, 'generation, call, task'))
  t.same(
    typed('images_generations', '1000_characters'),
    misfit('images_generations', 66, 'image, generation, call, task'),
  )
})

t.test('prices by size are of images, ascend, and begin somewhere', async (t) => {
  const tiers = 'pixel_tiers: [{ from_pixels: 9, per_unit: 2 }, { from_pixels: 9, per_unit: 3 }]'
  t.same(problemsOf(t, media(`pricing: { unit: image, variants: { a: 1 }, ${tiers} }`)), [
    '2:106 models[0].pricing.pixel_tiers: does not go with variants: an image has a price by its size or by its quality.',
    '2:155 models[0].pricing.pixel_tiers[1].from_pixels: must be more than 9 of the tier before it: tiers must ascend.',
  ])
  t.same(problemsOf(t, media('pricing: { unit: task, per_unit: 1, input_image: 1, pixel_tiers: [] }')), [
    '2:98 models[0].pricing.input_image: does not go with unit task.',
  ])
})

t.test('variants are prices that a request can ask for', async (t) => {
  const variants = (id: string, type: string, pricing: string, more = '') =>
    problemsOf(t, `models: [{ id: ${id}, endpoint_type: ${type}, ${more} pricing: { ${pricing} } }]`).map(
      (line) => line.replace(/^\d+:\d+ models\[0\]\.pricing\./, ''),
    )
  const prices = (...names: string[]) => `variants: { ${names.map((name) => `${name}: 1`).join(', ')} }`
  const refused = 'variants: does not go with this model: no request can name one, so it needs per_unit.'
  t.same(variants('a', 'music_generations', `unit: generation, ${prices('hd')}`), [refused])
  t.same(variants('a', 'audio_speech', `unit: 1000_characters, ${prices('hd')}`), [refused])
  t.same(variants('dh-lipsync', 'videos_generations', `unit: second, ${prices('720p')}`), [refused])
  t.same(variants('a', 'videos_generations', `unit: second, ${prices('max')}`, 'aliases: [dh-lipsync],'), [
    refused,
  ])
  t.same(variants('dh-motion', 'videos_generations', `unit: second, ${prices('720p')}`), [
    'variants: has no name that a request can ask for: they are fast, standard, max.',
  ])
  t.same(variants('a', 'images_generations', `unit: image, ${prices('fine')}`, 'images: { grid: true },'), [
    'variants: has no name that a request can ask for: they are sd, hd.',
  ])
  t.same(variants('a', 'images_generations', `unit: image, ${prices('HD')}`, 'images: { grid: true },'), [])
  t.same(variants('a', 'images_generations', `unit: image, ${prices('fine')}`), [])
  t.same(variants('dh-motion', 'videos_generations', `unit: second, ${prices('Max')}`), [])
  t.same(variants('a', 'music_generations', `unit: generation, per_unit: 1, ${prices('hd')}`), [])
})

t.test('what a video is by default belongs to video models, and has a price', async (t) => {
  const film = (videos: string, type = 'videos_generations', unit = 'second') =>
    problemsOf(
      t,
      `models: [{ id: a, endpoint_type: ${type}, videos: { ${videos} }, pricing: { unit: ${unit}, per_unit: 2, variants: { 720p: 1 } } }]`,
    ).map((line) => line.replace(/^\d+:\d+ /, ''))
  t.same(film('default_duration: 5, default_resolution: 720P'), [])
  t.same(film('default_resolution: 4k'), [
    'models[0].videos.default_resolution: must be one of the variants that have a price: 720p.',
  ])
  t.same(film('default_duration: 5', 'music_generations', 'task'), [
    'models[0].videos: goes with endpoint_type videos_generations only.',
  ])
  const planned = (prices: string) =>
    problemsOf(
      t,
      `models: [{ id: a, endpoint_type: videos_generations, videos: { default_resolution: 720p }, pricing: { unit: second, variants: { 720p: 1 }, changes: [{ from: "2026-01-01T00:00:00Z", variants: { 720P: 1 } }, { from: "2027-01-01T00:00:00Z", ${prices} }] } }]`,
    ).map((line) => line.replace(/^\d+:\d+ /, ''))
  t.same(planned('variants: { 720p: 1, 4k: 2 }'), [])
  t.same(planned('per_unit: 2'), [], 'one price for every resolution')
  t.same(planned('variants: { 480p: 1, 4k: 2 }'), [
    'models[0].videos.default_resolution: must be one of the variants that have a price from 2027-01-01T00:00:00Z on: 480p, 4k.',
  ])
})

t.test('traits of images belong to image models', async (t) => {
  const price = 'pricing: { unit: image, per_unit: 1 }'
  t.same(problemsOf(t, media(`images: { grid: true, default_size: 2048x2048 }, ${price}`)), [])
  t.same(problemsOf(t, media(`images: { default_size: large }, ${price}`)), [
    '2:73 models[0].images.default_size: must be a width and a height in pixels, such as 2048x2048.',
  ])
  t.same(problemsOf(t, model('a', 'images: { grid: true }\n    ')), [
    '3:5 models[0].images: goes with endpoint_type images_generations only.',
  ])
})

t.test('a variable without its closing brace is named by its place', async (t) => {
  const message = 'A "${" has no closing brace: a variable is written ${NAME}.'
  const keyed = (key: string) =>
    `models: [{ id: a, ${priced} }]\nchannels:\n  - id: x\n    protocol: messages\n    base_url: https://x.test\n    api_key: ${key}\n    models: { a: b }\n`
  t.same(problemsOf(t, keyed('${KEY')), [`6:14 channels[0].api_key: ${message}`])
  t.same(problemsOf(t, keyed('"${KEY"')), [`6:15 channels[0].api_key: ${message}`])
  t.same(problemsOf(t, keyed('${ONE}-${TWO')), [`6:21 channels[0].api_key: ${message}`])
  t.same(problemsOf(t, keyed('${KEY}')), [])
  t.same(problemsOf(t, keyed('$KEY')), [])
})

t.test('no model is called all, which means every model', async (t) => {
  const message = '"all" cannot be the name of a model: --models all means every model.'
  t.same(problemsOf(t, model('all')), [`2:9 models[0].id: ${message}`])
  t.same(problemsOf(t, model('a', 'aliases: [b, ALL]\n    ')), [`3:18 models[0].aliases[1]: ${message}`])
})

t.test('a model that can be called and that no channel serves is a warning', async (t) => {
  const path = join(t.testdir(), 'c.yaml')
  const off = `channels: [{ id: x, protocol: chat-completions, base_url: https://x.test/v1, api_key: "", models: { a: b } }]`
  const listed = `  - { id: c, callable: false, ${priced} }\n`
  writeFileSync(path, `${model('a')}  - { id: b, ${priced} }\n${listed}${off}\n`)
  const loaded = loadConfigFile(path, {})
  const line = { file: path, line: 4, column: 11, field: 'models[1].id', message: /^No channel serves "b"/ }
  t.match(loaded, { ok: true, warnings: [line] })
  t.equal(loaded.ok && loaded.warnings.length, 1, 'a channel that is off counts')
})

t.test('a fallback is another model that can be called and is priced by tokens', async (t) => {
  const models =
    `models:\n  - { id: a, aliases: [a1], fallbacks: [b, a1, a, nix, off, film], ${priced} }\n` +
    `  - { id: b, ${priced} }\n  - { id: off, callable: false, ${priced} }\n` +
    '  - { id: film, endpoint_type: videos_generations, pricing: { unit: second, per_unit: 1 } }\n'
  t.same(
    problemsOf(t, models).map((line) => line.replace(/^\d+:\d+ models\[0\]\./, '')),
    [
      'fallbacks[1]: "a1" is an alias: name the model by its id, "a".',
      'fallbacks[2]: A model cannot serve in place of itself.',
      'fallbacks[3]: There is no model "nix" in the catalog.',
      'fallbacks[4]: "off" cannot be called.',
      'fallbacks[5]: "film" is no chat model: it is not priced by tokens.',
    ],
  )
})

t.test('several keys go with chat protocols; empty ones do not count', async (t) => {
  const keyed = (protocol: string, keys: string) =>
    `${model('a')}channels:\n  - { id: x, protocol: ${protocol}, base_url: "https://x.test/v1", api_keys: ${keys}, models: { a: b } }\n`
  t.same(problemsOf(t, keyed('chat-completions', '[one, two]')), [])
  t.match(problemsOf(t, keyed('openai-speech', '[one, two]')), [/api_keys: goes with chat protocols only/])
  const path = join(t.testdir(), 'c.yaml')
  const channelWith = (keys: string) => {
    writeFileSync(path, keyed('chat-completions', keys))
    const loaded = loadConfigFile(path, { ONE: 'one' })
    if (!loaded.ok) throw new Error('refused')
    return loaded.config.channels[0]!
  }
  t.match(channelWith('["${ONE}", "${TWO}", two]'), { api_key: 'one', api_keys: ['one', 'two'] })
  t.equal(channelWith('["${ONE}", "${TWO}"]').api_key, 'one')
  t.equal(channelWith('["${ONE}", "${TWO}"]').api_keys.length, 0, 'one key is no pool')
  t.equal(channelWith('["${TWO}"]').api_key, '', 'the channel is off')
})

t.test('costs are of models that the channel serves, in a unit that goes with them', async (t) => {
  const served = 'protocol: chat-completions, base_url: "https://x.test/v1", models: { a: up }'
  t.same(problemsOf(t, channel(`${served}, cost: { a: { unit: 1M_tokens, input: 1, output: 1 } }`)), [])
  const [problem, ...others] = problemsOf(t, channel(`${served}, cost: { b: { unit: image, per_unit: 1 } }`))
  t.match(problem, /channels\[0\]\.cost\.b: The channel does not serve a model "b"\./)
  t.same(others, [])
  t.match(problemsOf(t, channel(`${served}, cost: { a: { unit: image, per_unit: 1 } }`)), [
    /channels\[0\]\.cost\.a\.unit: must be 1M_tokens for a chat model/,
  ])
  t.match(problemsOf(t, channel(`${served}, cost: { a: { unit: 1M_tokens, input: 1 } }`)), [
    /channels\[0\]\.cost\.a\.output: is required with unit 1M_tokens\./,
  ])
})

t.test('gaps in the costs of a channel are warnings', async (t) => {
  const path = join(t.testdir(), 'c.yaml')
  writeFileSync(
    path,
    `
models:
  - { id: a, pricing: { unit: 1M_tokens, input: 1, output: 2, service_tiers: { flex: 0.5 } } }
  - { id: b, ${priced} }
  - id: i
    endpoint_type: images_generations
    pricing: { unit: image, variants: { small: 1, large: 2 } }
channels:
  - id: x
    protocol: chat-completions
    base_url: https://x.test/v1
    api_key: k
    models: { a: up, b: up }
    cost: { a: { unit: 1M_tokens, input: 1, output: 1 } }
  - id: y
    protocol: openai-images
    base_url: https://x.test/v1
    api_key: k
    models: { i: up }
    cost: { i: { unit: image, variants: { small: 1 } } }
  - { id: z, protocol: chat-completions, base_url: https://x.test/v1, api_key: k, models: { b: up } }
`,
  )
  const result = loadConfigFile(path, {})
  t.same(result.ok && result.warnings.map(({ field, message }) => `${field}: ${message}`), [
    'channels[0].cost.a: has no factor for the service tier flex: it counts as 1.',
    'channels[0].cost: has no price for b: the cost of its calls is unknown.',
    'channels[1].cost.i: has neither a price for large nor per_unit.',
  ])
})

t.test('what may be one of several numbers, or of several forms, is named', async (t) => {
  t.same(problemsOf(t, `${model('a')}nats: { replicas: 2 }\n`), [
    '4:19 nats.replicas: must be one of 1, 3, 5.',
  ])
  t.same(problemsOf(t, `${model('a')}server: { trusted_proxies: [10.0.0.0/8, proxy] }\n`), [
    '4:41 server.trusted_proxies[1]: must be an address or a network, such as 10.0.0.0/8.',
  ])
})
