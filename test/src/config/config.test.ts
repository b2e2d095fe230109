/** The configuration: settings of the environment, and the file. */

import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import {
  closeSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { parse, parseDocument } from 'yaml'
import { CHAT_PROTOCOLS } from '../../../schemas/config/catalog.ts'
import { mediaJob } from '../../../schemas/media/job.ts'
import { printCredits } from '../../../schemas/money.ts'
import { MEDIA_DIALECTS } from '../../../simulator/dialects.ts'
import { splitModelName } from '../../../simulator/directives/grammar.ts'
import { listWorks, MEDIA_PROTOCOLS } from '../../../src/channels/media/registry.ts'
import {
  DEMONSTRATION_FILE,
  needsSimulator,
  SIMULATOR_URL_VARIABLE,
} from '../../../src/config/demonstration.ts'
import { type LoadResult, loadConfigFile } from '../../../src/config/load.ts'
import type { Problem } from '../../../src/config/problem.ts'
import { hideSecrets, MASK, restoreSecrets } from '../../../src/config/secrets.ts'
import {
  findMisspelledSettings,
  localUrl,
  readSettings,
  SettingsError,
} from '../../../src/config/settings.ts'
import type { Environment } from '../../../src/config/source.ts'
import { watchConfig } from '../../../src/config/watch.ts'
import { computeHold, findMediaPrice } from '../../../src/core/media/pricing.ts'
import { isRequestedModel } from '../../../src/core/routing/answered-model.ts'
import { createCatalog, type Model } from '../../../src/core/routing/catalog.ts'
import { hasAccess } from '../../../src/core/routing/channel-access.ts'
import { until } from '../../support/eventually.ts'
import { loadChannels } from '../channels/providers/support.ts'

t.test('load', async (t) => {
  // The configuration file: read, checked, and read again.
  t.test('broken file every problem', async (t) => {
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
      t.match(broken('unit: 1M_tokens, input: 1, output: 1, discount: 1.2'), [
        /^discount: must be above 0 and/,
      ])
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
        for (const path of bad)
          t.notOk(isTaken(protocol, `https://example.com${path}`), `${protocol} ${path}`)
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
        problemsOf(
          t,
          `models:\n  - { id: a, endpoint_type: ${type}, pricing: { unit: ${unit}, per_unit: 1 } }\n`,
        )
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
      t.same(
        variants('a', 'videos_generations', `unit: second, ${prices('max')}`, 'aliases: [dh-lipsync],'),
        [refused],
      )
      t.same(variants('dh-motion', 'videos_generations', `unit: second, ${prices('720p')}`), [
        'variants: has no name that a request can ask for: they are fast, standard, max.',
      ])
      t.same(
        variants('a', 'images_generations', `unit: image, ${prices('fine')}`, 'images: { grid: true },'),
        ['variants: has no name that a request can ask for: they are sd, hd.'],
      )
      t.same(
        variants('a', 'images_generations', `unit: image, ${prices('HD')}`, 'images: { grid: true },'),
        [],
      )
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
      const line = {
        file: path,
        line: 4,
        column: 11,
        field: 'models[1].id',
        message: /^No channel serves "b"/,
      }
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
      t.match(problemsOf(t, keyed('openai-speech', '[one, two]')), [
        /api_keys: goes with chat protocols only/,
      ])
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

    t.test('models whose requests pass to a channel', async (t) => {
      const model = (id: string, type: string, pricing: string, more = '') =>
        `  - { id: ${id}, endpoint_type: ${type}, pricing: { ${pricing} }${more} }\n`
      const words = model('words', 'embeddings', 'unit: 1M_tokens, input: 1')
      const rank = model('rank', 'rerank', 'unit: search, per_unit: 1')
      const problems = (models: string, protocol = 'chat-completions') => {
        const channel = `{ id: x, protocol: ${protocol}, base_url: "https://x.test/v1", models: { words: up, rank: up } }`
        return problemsOf(t, `models:\n${models}channels:\n  - ${channel}\n`)
      }
      t.same(problems(words + rank), [])
      t.match(problems(words + rank, 'responses'), [
        /models\.words: "words" is of endpoint_type embeddings: only channels of protocol chat-completions/,
        /models\.rank: "rank" is of endpoint_type rerank/,
      ])
      t.match(problems(words + model('rank', 'rerank', 'unit: call, per_unit: 1')), [
        /unit: must be one of search for endpoint_type rerank/,
      ])
      t.same(problems(words + model('rank', 'audio_transcriptions', 'unit: minute, per_unit: 1')), [])
      t.match(problems(words + model('rank', 'audio_transcriptions', 'unit: second, per_unit: 1')), [
        /unit: must be one of minute for endpoint_type audio_transcriptions/,
      ])
      t.match(problems(rank + model('words', 'embeddings', 'unit: 1M_tokens, input: 1, output: 1')), [
        /output: does not go with endpoint_type embeddings/,
      ])
      t.match(
        problems(rank + model('words', 'embeddings', 'unit: 1M_tokens, input: 1', ', fallbacks: [rank]')),
        [/fallbacks\[0\]: "rank" is a model of another endpoint: its endpoint_type is rerank/],
      )
    })

    t.test('costs are of models that the channel serves, in a unit that goes with them', async (t) => {
      const served = 'protocol: chat-completions, base_url: "https://x.test/v1", models: { a: up }'
      t.same(problemsOf(t, channel(`${served}, cost: { a: { unit: 1M_tokens, input: 1, output: 1 } }`)), [])
      const [problem, ...others] = problemsOf(
        t,
        channel(`${served}, cost: { b: { unit: image, per_unit: 1 } }`),
      )
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
  })

  t.test('changed file taken up', async (t) => {
    const POLL_MS = 10
    /** Long enough for several looks; used only where nothing is to happen. */
    const QUIET_MS = 10 * POLL_MS

    /** A configuration identified by its number of retries. */
    const config = (retries: number) => `retries: ${retries}\n`

    class Watched {
      readonly taken: number[] = []
      readonly refused: (readonly Problem[])[] = []

      constructor(t: Test, path: string, loaded = loadConfigFile(path, {})) {
        const watch = watchConfig(path, {
          env: {},
          loaded,
          pollIntervalMs: POLL_MS,
          onChange: ({ retries }) => this.taken.push(retries),
          onRefused: (problems) => this.refused.push(problems),
        })
        const held = setInterval(() => {}, 60_000)
        t.teardown(() => {
          watch.close()
          clearInterval(held)
        })
      }

      /** Waits until so much has happened. */
      until = (taken: number[], refused = 0): Promise<void> =>
        until('the file is read', () => this.taken.length >= taken.length && this.refused.length >= refused)
    }

    function start(t: Test): { path: string; watched: Watched } {
      const path = join(t.testdir({ 'c.yaml': config(1) }), 'c.yaml')
      return { path, watched: new Watched(t, path) }
    }

    /** Opens files until this process may open no more, of a limit that is low meanwhile. Returns what closes them. */
    function takeEveryDescriptor(t: Test): () => void {
      const limit = (soft: string) =>
        execFileSync('prlimit', ['--pid', `${process.pid}`, `--nofile=${soft}:`], { stdio: 'pipe' })
      const [, before = ''] = /^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))!
      const taken: number[] = []
      const free = () => {
        for (const descriptor of taken.splice(0)) closeSync(descriptor)
        limit(before)
      }
      t.teardown(() => taken.length > 0 && free())
      limit('256')
      try {
        for (;;) taken.push(openSync('/dev/null', 'r'))
      } catch {
        return free
      }
    }

    t.test('written in place', async (t) => {
      const { path, watched } = start(t)
      writeFileSync(path, config(2))
      await watched.until([2])
      writeFileSync(path, config(3))
      await watched.until([2, 3])
      t.same(watched.taken, [2, 3])
      t.same(watched.refused, [])
    })

    t.test('replaced by rename, with the same size and time', async (t) => {
      const { path, watched } = start(t)
      writeFileSync(`${path}.new`, config(2))
      utimesSync(path, 1000, 1000)
      utimesSync(`${path}.new`, 1000, 1000)
      renameSync(`${path}.new`, path)
      await watched.until([2])
      t.same(watched.taken, [2])
    })

    t.test('a folder swapped behind two links, as a ConfigMap is', async (t) => {
      const folder = t.testdir({})
      for (const [name, retries] of Object.entries({ one: 1, two: 2 })) {
        mkdirSync(join(folder, name))
        writeFileSync(join(folder, name, 'c.yaml'), config(retries))
      }
      symlinkSync('one', join(folder, '..data'))
      symlinkSync('..data/c.yaml', join(folder, 'c.yaml'))
      const watched = new Watched(t, join(folder, 'c.yaml'))
      symlinkSync('two', join(folder, '..data_tmp'))
      renameSync(join(folder, '..data_tmp'), join(folder, '..data'))
      rmSync(join(folder, 'one'), { recursive: true })
      await watched.until([2])
      t.same(watched.taken, [2])
    })

    t.test('a broken file is refused whole, once, and the next sound one is taken up', async (t) => {
      const { path, watched } = start(t)
      writeFileSync(path, 'retries: 2\nretrys: 3\n')
      await watched.until([], 1)
      await sleep(QUIET_MS)
      t.match(watched.refused, [
        [{ file: path, line: 2, field: 'retrys', message: /Did you mean "retries"/ }],
      ])
      t.same(watched.taken, [])
      writeFileSync(path, config(4))
      await watched.until([4], 1)
      t.same(watched.taken, [4])
      t.equal(watched.refused.length, 1)
    })

    t.test('an emptied or removed file leaves the old one in force', async (t) => {
      const { path, watched } = start(t)
      truncateSync(path)
      await watched.until([], 1)
      rmSync(path)
      await watched.until([], 2)
      t.same(
        watched.refused.map(([problem]) => problem?.message),
        ['The file is empty.', 'There is no such file.'],
      )
      writeFileSync(path, config(5))
      await watched.until([5], 2)
      t.same(watched.taken, [5])
    })

    t.test('a file that cannot be reached leaves the old one in force', async (t) => {
      const { path, watched } = start(t)
      rmSync(path)
      symlinkSync('c.yaml', path)
      await watched.until([], 1)
      await sleep(QUIET_MS)
      t.match(watched.refused, [[{ file: path, message: /^It cannot be read: ELOOP/ }]])
      rmSync(path)
      writeFileSync(path, config(6))
      await watched.until([6], 1)
      t.same(watched.taken, [6])
    })

    t.test('a file that cannot be opened for a moment is read once it can be', async (t) => {
      const { path, watched } = start(t)
      const changed = openSync(path, 'r+')
      const free = takeEveryDescriptor(t)
      writeSync(changed, config(7), 0)
      await watched.until([], 1)
      await sleep(QUIET_MS)
      free()
      t.match(watched.refused, [[{ file: path, message: /^It cannot be read: EMFILE/ }]], 'reported once')
      await watched.until([7], 1)
      t.same(watched.taken, [7])
    })

    t.test('touched without a change: nothing happens', async (t) => {
      const { path, watched } = start(t)
      writeFileSync(path, config(1))
      await sleep(QUIET_MS)
      t.same(watched.taken, [])
      t.same(watched.refused, [])
    })

    t.test('changed between loading and watching', async (t) => {
      const path = join(t.testdir({ 'c.yaml': config(1) }), 'c.yaml')
      const loaded = loadConfigFile(path, {})
      writeFileSync(path, config(2))
      const watched = new Watched(t, path, loaded)
      await watched.until([2])
      t.same(watched.taken, [2])
    })
  })

  t.test('variables filled in', async (t) => {
    const CONFIG = `
models: [{ id: a, pricing: { unit: 1M_tokens, input: 1, output: 2 } }]
channels:
  - id: x
    protocol: chat-completions
    base_url: \${BASE}/v1/
    api_key: \${KEY}
    models: { a: "\${PREFIX}-\${PREFIX}" }
    headers: { x-cost: "$5 {KEY} \${not a name}" }
`

    function load(t: Test, env: Environment, text = CONFIG): LoadResult {
      const path = join(t.testdir(), 'c.yaml')
      writeFileSync(path, text)
      return loadConfigFile(path, env)
    }

    t.test('a variable is replaced within text values, and only that form', async (t) => {
      const result = load(t, { BASE: 'https://example.com', KEY: 'sk-1\n', PREFIX: 'p' })
      if (!result.ok) throw new Error(JSON.stringify(result.problems))
      const [channel] = result.config.channels
      t.match(channel, {
        base_url: 'https://example.com/v1',
        api_key: 'sk-1',
        models: { a: 'p-p' },
        headers: { 'x-cost': '$5 {KEY} $' + '{not a name}' },
      })
      t.same([...result.variables].sort(), ['BASE', 'KEY', 'PREFIX'])
    })

    t.test('a channel without a key stays in the configuration, off', async (t) => {
      const result = load(t, { BASE: 'https://example.com', PREFIX: 'p' })
      if (!result.ok) throw new Error(JSON.stringify(result.problems))
      t.match(result.config.channels, [{ id: 'x', api_key: '' }])
    })

    t.test('a value cannot add fields to the file', async (t) => {
      const result = load(t, {
        BASE: 'https://example.com',
        KEY: 'k, priority: 9',
        PREFIX: 'p"\n    weight: 3\n#',
      })
      t.match(result, { ok: false, problems: [{ field: 'channels[0].api_key' }] })
      t.notMatch(JSON.stringify(result), 'priority: 9', 'nor is a secret repeated in the problem')
    })

    t.test('a problem that comes from an unset variable names it', async (t) => {
      t.match(load(t, { KEY: 'k', PREFIX: 'p' }), {
        ok: false,
        problems: [{ line: 6, field: 'channels[0].base_url', message: /not set in the environment: BASE/ }],
      })
    })

    t.test('an anchor is unfolded where it is used', async (t) => {
      const text = `models:
  - { id: a, pricing: &p { unit: 1M_tokens, input: "\${P}", output: 2 } }
  - { id: b, pricing: *p }
`
      const result = load(t, { P: '3.5' }, text)
      if (!result.ok) throw new Error(JSON.stringify(result.problems))
      t.same(result.config.models[1]?.pricing, result.config.models[0]?.pricing)
      t.equal(result.config.models[1]?.pricing?.input, 3_500_000_000_000n)
    })

    t.test('the demonstration is a sound configuration of simulated models', async (t) => {
      const result = loadConfigFile(DEMONSTRATION_FILE, { [SIMULATOR_URL_VARIABLE]: 'http://127.0.0.1:7' })
      if (!result.ok) throw new Error(JSON.stringify(result.problems))
      t.ok(needsSimulator(result.variables))
      const { models, channels } = result.config
      t.ok(
        models.some(({ callable }) => !callable),
        'a placeholder is among them',
      )
      t.ok(models.some(({ pricing }) => pricing?.tiers[0]?.from_prompt_tokens === 272_000))
      t.ok(models.some(({ pricing }) => pricing?.tiers[0]?.from_prompt_tokens === 200_000))
      const on = channels.filter(({ api_key }) => api_key !== '')
      t.same([...new Set(on.map(({ base_url }) => new URL(base_url).origin))], ['http://127.0.0.1:7'])
      const simulated = MEDIA_PROTOCOLS.filter((name) =>
        MEDIA_DIALECTS.some((dialect) => dialect.name === name),
      )
      t.same(new Set(on.map(({ protocol }) => protocol)), new Set([...CHAT_PROTOCOLS, ...simulated]))
      const served = new Set(on.flatMap((channel) => Object.keys(channel.models)))
      for (const { id, callable } of models) t.equal(served.has(id), callable, id)
      for (const name of on.flatMap((channel) => Object.values(channel.models))) t.match(name, /^sim-/)
    })
  })

  t.test('channels inherit from the installation', async (t) => {
    // Settings that a channel leaves to its installation, and the profile of strangers.
    const MODEL = 'models: [{ id: m, pricing: { unit: 1M_tokens, input: 1, output: 2 } }]'
    const channel = (id: string, more = '') =>
      `  - { id: ${id}, provider: openai, api_key: k, models: { m: up }${more} }`

    function hidden(top: string): (boolean | undefined)[] {
      const path = join(t.testdir(), 'c.yaml')
      const channels = [
        channel('a'),
        channel('b', ', hide_auth_errors: true'),
        channel('c', ', hide_auth_errors: false'),
      ]
      writeFileSync(path, [top, MODEL, 'channels:', ...channels, ''].join('\n'))
      const loaded = loadConfigFile(path, {})
      if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems))
      return loaded.config.channels.map(({ hide_auth_errors }) => hide_auth_errors)
    }

    t.test(
      'a channel hides refusals of its key as the installation does, unless it says otherwise',
      async (t) => {
        t.same(hidden(''), [false, true, false])
        t.same(hidden('hide_auth_errors: true'), [true, true, false])
        t.same(hidden('profile: public'), [true, true, false])
        t.same(hidden('profile: public\nhide_auth_errors: false'), [false, true, false])
      },
    )
  })

  t.test('tools of a vendor that are off without a rate are a warning', async (t) => {
    const path = join(t.testdir(), 'c.yaml')
    const listWarnings = (top: string, more = '') => {
      const channel = `{ id: a, provider: openai, protocol: responses, api_key: k, models: { m: up }${more} }`
      const model = '{ id: m, pricing: { unit: 1M_tokens, input: 1, output: 2 } }'
      writeFileSync(path, `${top}\nmodels: [${model}]\nchannels:\n  - ${channel}\n`)
      const loaded = loadConfigFile(path, {})
      return loaded.ok ? loaded.warnings.map(({ field, message }) => `${field}: ${message}`) : null
    }
    t.match(listWarnings(''), [
      /^channels\[0\]\.provider: Off, .*: web_search, code_interpreter\. Set credits_per_dollar/,
    ])
    t.same(listWarnings('credits_per_dollar: "202.2"'), [])
    t.same(listWarnings('', ', tools: []'), [])
  })

  t.test('cache hits without a price are a warning', async (t) => {
    t.test('a family with cache writes and no price for cache hits is a warning', async (t) => {
      const path = join(t.testdir(), 'c.yaml')
      const priced = (more: string) => `pricing: { unit: 1M_tokens, input: 1, output: 2${more} }`
      const text = `models:
  - { id: a, family: f, ${priced(', cache_write: 1.25')} }
  - { id: b, family: f, ${priced('')} }
  - { id: c, ${priced('')} }
  - { id: d, ${priced(', cached_input: 0.1')} }
  - { id: e, ${priced('')} }
channels:
  - { id: x, protocol: messages, base_url: https://x.test, api_key: k, models: { c: c, d: d } }
  - { id: y, protocol: chat-completions, base_url: https://y.test/v1, api_key: k, models: { a: a, b: b, e: e } }
`
      writeFileSync(path, text)
      const loaded = loadConfigFile(path, {})
      const warnings = loaded.ok ? loaded.warnings : []
      t.same(
        warnings.map(({ field }) => field),
        ['models[0].pricing', 'models[1].pricing', 'models[2].pricing'],
      )
      for (const { message } of warnings)
        t.match(message, /^has no cached_input: cache hits are billed at input x 0\.1/)
    })
  })

  t.test('prices of sound are checked', async (t) => {
    function messagesOf(test: Test, text: string): string[] {
      const path = join(test.testdir(), 'c.yaml')
      writeFileSync(path, text)
      const result = loadConfigFile(path, {})
      const isOfPrices = ({ field }: { field: string }) => /pricing|cost|videos/.test(field)
      const found = result.ok ? result.warnings : result.problems
      return found.filter(isOfPrices).map(({ field, message }) => `${field}: ${message}`)
    }

    const modelOf = (pricing: string, id = 'film', type = 'videos_generations', more = '') =>
      `models: [{ id: ${id}, endpoint_type: ${type}, ${more} pricing: { ${pricing} } }]\n`
    const SOUND = 'unit: second, per_unit: 1, with_audio: { per_unit: 2 }'

    t.test('prices with sound belong to videos that a request can have sound made for', async (t) => {
      t.same(messagesOf(t, modelOf(SOUND)), [])
      t.same(messagesOf(t, modelOf('unit: generation, per_unit: 1, with_audio: { variants: { 4k: 2 } }')), [])
      t.same(messagesOf(t, modelOf('unit: second, per_unit: 1, with_audio: {}')), [], 'sound is refused')
      const none = 'with_audio: does not go with this model: no request can ask it for sound.'
      t.same(messagesOf(t, modelOf(SOUND, 'dh-lipsync')), [`models[0].pricing.${none}`])
      t.same(messagesOf(t, modelOf('unit: task, per_unit: 1, with_audio: {}', 'song', 'music_generations')), [
        `models[0].pricing.${none}`,
      ])
      const planned = `unit: second, per_unit: 1, changes: [{ from: "2027-01-01T00:00:00Z", per_unit: 1, with_audio: { per_unit: abc } }]`
      t.match(messagesOf(t, modelOf(planned)), [
        /pricing\.changes\[0\]\.with_audio\.per_unit: A price must be a decimal number/,
      ])
      const tokens =
        'models: [{ id: a, pricing: { unit: 1M_tokens, input: 1, output: 1, with_audio: { per_unit: 2 } } }]'
      t.same(messagesOf(t, tokens), ['models[0].pricing.with_audio: does not go with unit 1M_tokens.'])
    })

    t.test('a model that makes sound by itself has a price for it', async (t) => {
      const loud = 'videos: { default_audio: true },'
      t.same(messagesOf(t, modelOf(SOUND, 'film', 'videos_generations', loud)), [])
      t.same(messagesOf(t, modelOf('unit: second, per_unit: 1', 'film', 'videos_generations', loud)), [])
      t.same(
        messagesOf(
          t,
          modelOf('unit: second, per_unit: 1, with_audio: {}', 'film', 'videos_generations', loud),
        ),
        [
          'models[0].pricing.with_audio: needs a price: videos.default_audio gives sound to requests that do not say.',
        ],
      )
    })

    t.test('the default resolution is one that plain requests have a price for', async (t) => {
      const found = (default_audio: boolean) =>
        messagesOf(
          t,
          modelOf(
            'unit: second, variants: { 720p: 1, 4k: 2 }, with_audio: { variants: { 4k: 3 } }',
            ...(['film', 'videos_generations'] as const),
            `videos: { default_audio: ${default_audio}, default_resolution: 720p },`,
          ),
        )
      t.same(found(false), [])
      t.same(found(true), [
        'models[0].videos.default_resolution: must be one of the variants that have a price: 4k.',
      ])
    })

    t.test('gaps in the costs of sound are warnings', async (t) => {
      const warned = (price: string, cost: string) =>
        messagesOf(
          t,
          `${modelOf(price)}channels: [{ id: c, protocol: fal, base_url: "https://x.test", api_key: k, models: { film: up }, cost: { film: { ${cost} } } }]\n`,
        )
      t.same(warned(SOUND, SOUND), [])
      t.same(warned('unit: second, per_unit: 1', SOUND), [], 'one price for customers')
      t.same(warned(SOUND, 'unit: second, per_unit: 1'), [
        'channels[0].cost.film: has no with_audio: a video with sound costs what one without does.',
      ])
      const variants =
        'unit: second, variants: { 720p: 1, 4k: 2 }, with_audio: { variants: { 720p: 3, 4k: 4 } }'
      t.same(
        warned(variants, 'unit: second, variants: { 720p: 1, 4k: 1 }, with_audio: { variants: { 720p: 1 } }'),
        ['channels[0].cost.film: has neither a price for 4k with sound nor per_unit.'],
      )
      t.same(warned(variants, 'unit: second, per_unit: 1, with_audio: { per_unit: 2 }'), [])
    })
  })

  t.test('access of a channel is checked', async (t) => {
    function problemsOf(fields: string): string[] {
      const loaded = loadChannels(`  - { id: c, provider: openai, models: { m: up }, ${fields} }\n`)
      return loaded.ok ? [] : loaded.problems.map(({ field, message }) => `${field}: ${message}`)
    }

    const aws = (fields: string) => `auth: { type: aws-sigv4, region: us-east-1, ${fields} }`

    t.test('what is wrong is named', async (t) => {
      t.same(problemsOf(aws('service: bedrock')), [])
      t.same(problemsOf('auth: { type: basic }'), [
        'channels[0].auth.type: must be one of aws-sigv4, google, azure-entra, jwt-hs256.',
      ])
      t.same(problemsOf('auth: { region: us-east-1 }'), ['channels[0].auth.type: is required.'])
      t.same(problemsOf('auth: { type: aws-sigv4 }'), ['channels[0].auth.region: is required.'])
      t.same(problemsOf(aws('regoin: x')), ['channels[0].auth.regoin: There is no such field.'])
      t.same(problemsOf(aws('access_key_id: a')), [
        'channels[0].auth: access_key_id and secret_access_key go together. Without both, the environment has the credentials.',
      ])
      t.same(problemsOf(`api_key: k, ${aws('profile: p')}`), [
        'channels[0].auth: takes the place of a key: leave out api_key and api_keys.',
      ])
      t.same(problemsOf(`protocol: openai-images, ${aws('profile: p')}`), [
        'channels[0].auth.type: aws-sigv4 goes with chat protocols only.',
      ])
      t.same(problemsOf('auth: { type: google, credentials: x, credentials_file: y }'), [
        'channels[0].auth: has credentials_file and credentials: leave one out.',
      ])
    })

    t.test('a channel with an empty secret is off, and the variable is named', async (t) => {
      const text = (auth: string) => `  - { id: c, provider: openai, models: { m: up }, auth: { ${auth} } }\n`
      const jwt = text('type: jwt-hs256, access_key: "${KLING_ACCESS}", secret_key: "${KLING_SECRET}"')
      const off = loadChannels(jwt, { KLING_ACCESS: 'a' })
      if (!off.ok) throw new Error('the file was refused')
      t.equal(hasAccess(off.config.channels[0]!), false)
      t.same(
        off.warnings.map(({ field, message }) => [field, message]),
        [['channels[0].auth.secret_key', 'The channel is off: not set in the environment: KLING_SECRET.']],
      )
      const on = loadChannels(jwt, { KLING_ACCESS: 'a', KLING_SECRET: 's' })
      if (!on.ok) throw new Error('the file was refused')
      t.equal(hasAccess(on.config.channels[0]!), true)
      t.same(on.warnings, [])
      const environment = loadChannels(text('type: google'))
      t.ok(
        environment.ok && hasAccess(environment.config.channels[0]!),
        'the environment has the credentials',
      )
    })
  })

  t.test('demonstration models and prices', async (t) => {
    // The demonstration has each fixed id at its price, with a channel.
    const loaded = loadConfigFile(DEMONSTRATION_FILE, { TOLLGATE_SIMULATOR_URL: 'http://127.0.0.1:1' })
    if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems))
    const catalog = createCatalog(loaded.config)

    const model = (id: string): Model => {
      const found = catalog.resolve(id)
      if (found === null) throw new Error(`no model ${id}`)
      return found
    }

    /** What is held for the job, in credits. */
    function priceOf(id: string, job: object, variant: string | null = null): string {
      const price = findMediaPrice(model(id).entry, variant, Date.now())
      return price === null ? 'no price' : printCredits(computeHold(price, mediaJob.parse(job)))
    }

    const picture = { from: 'url', url: 'https://x.test/a.png' }
    const image = (more: object) => ({ work: 'image', prompt: 'a cat', n: 1, ...more })
    const voice = { work: 'voice', name: 'Ada', audio: picture }
    const transcript = { work: 'transcript', url: 'x' }
    const avatar = { work: 'avatar', name: 'Ada', source: picture, source_kind: 'image' }
    const speaks = { work: 'avatar_video', avatar: 'a', duration: 1 }
    const lips = { work: 'lipsync', source_video: picture, audio: picture, duration: 1 }
    const moves = (resolution: string) => ({
      work: 'motion',
      source_video: picture,
      portraits: [picture],
      face_count: 1,
      resolution,
      duration: 1,
    })
    const subtitle = { work: 'subtitle', video: picture }
    const clip = {
      work: 'clip_compose',
      video: picture,
      asr_id: 'a',
      enable_title_effect: false,
      enable_caption_effect: true,
      enable_keyword_effect: true,
    }

    t.test('each fixed id at its price', async (t) => {
      t.equal(priceOf('voice-tts-pro', { work: 'speech', input: 'x'.repeat(1000), speed: 1 }), '125.36')
      t.equal(priceOf('voice-clone-pro', voice), '40.44')
      t.equal(priceOf('video-transcript', transcript), '20.22')
      t.equal(priceOf('dh-avatar-create', avatar), '220.11')
      t.equal(priceOf('dh-avatar', speaks), '3.96')
      t.equal(priceOf('dh-lipsync', lips), '4.04')
      t.equal(priceOf('dh-lipsync-pro', lips), '8.09')
      t.equal(priceOf('dh-lipsync-max', lips), '12.13')
      t.equal(priceOf('dh-motion', moves('fast'), 'fast'), '4.04')
      t.equal(priceOf('dh-motion', moves('standard'), 'standard'), '8.09')
      t.equal(priceOf('dh-motion', moves('max'), 'max'), '12.13')
      t.equal(priceOf('clip-compose', clip), '48')
      t.equal(priceOf('clip-subtitle', subtitle), '0')
      t.equal(priceOf('demo-music', { work: 'music', prompt: 'x', instrumental: false }), '19.41')
    })

    t.test('the image model with tiers: its threshold lies between two known sizes', async (t) => {
      t.equal(priceOf('demo-image-tiered', image({ size: '1536x1536' })), '17.79', '2.36 megapixels')
      t.equal(priceOf('demo-image-tiered', image({ size: '1616x1616' })), '35.58', '2.61 megapixels')
      t.equal(priceOf('demo-image-tiered', image({})), '35.58')
      t.equal(priceOf('demo-image-tiered', image({ images: [picture] })), '37.08')
      t.equal(priceOf('demo-image-grid', image({})), priceOf('demo-image-grid', image({ n: 4 })))
    })

    t.test('each model of media has a channel, and each simulated adapter a model', async (t) => {
      const media = catalog.models.filter(({ entry }) => entry.endpoint_type !== null)
      t.ok(media.length >= 20)
      const used = new Set<string>()
      for (const model of media) {
        const protocols = MEDIA_PROTOCOLS.filter((protocol) => catalog.routes(model, protocol).length > 0)
        t.ok(
          protocols.some((protocol) => listWorks(protocol).length > 0),
          model.id,
        )
        for (const protocol of protocols) used.add(protocol)
      }
      const simulated = MEDIA_PROTOCOLS.filter((name) =>
        MEDIA_DIALECTS.some((dialect) => dialect.name === name),
      )
      t.same([...used].sort(), simulated.toSorted())
      t.ok(simulated.length >= 7)
    })

    t.test('the simulated provider answers each chat model under the name that was asked for', async (t) => {
      for (const { protocol, models } of loaded.config.channels)
        if (CHAT_PROTOCOLS.some((name) => name === protocol))
          for (const asked of Object.values(models))
            t.ok(isRequestedModel(asked, splitModelName(asked).model), asked)
    })
  })
})

t.test('settings', async (t) => {
  // Settings and secrets of the configuration.
  t.test('settings read', async (t) => {
    const problemsOf = (env: Environment) => {
      try {
        readSettings(env, '/nowhere')
        return []
      } catch (error) {
        if (!(error instanceof SettingsError)) throw error
        return error.problems.map(({ variable }) => variable)
      }
    }

    t.test('nothing set: everything embedded, in the working folder', async (t) => {
      const folder = t.testdir({})
      t.same(readSettings({ UNRELATED: 'x', DATABASE_URL: '', S3_BUCKET: ' ' }, folder), {
        host: '127.0.0.1',
        port: 8080,
        admin: null,
        tls: null,
        publicUrl: null,
        console: { host: null },
        dataDir: join(folder, '.tollgate'),
        configPath: null,
        masterKey: null,
        newMasterKey: null,
        keys: null,
        workers: 1,
        roles: ['gateway', 'settler', 'tasks'],
        databaseUrl: null,
        databaseOwnerUrl: null,
        databasePoolUrl: null,
        databaseReadUrl: null,
        natsUrl: null,
        clickhouseUrl: null,
        objectStore: null,
        mail: null,
        payments: null,
        logLevel: 'info',
      })
    })

    t.test('a listener for operators, and TLS for the other', async (t) => {
      t.same(readSettings({ TOLLGATE_ADMIN_PORT: '9000' }).admin, { host: '127.0.0.1', port: 9000 })
      t.match(readSettings({ TOLLGATE_ADMIN_PORT: '0', TOLLGATE_ADMIN_HOST: '::' }), {
        admin: { host: '::', port: 0 },
      })
      const both = { TOLLGATE_TLS_CERT: 'tls.crt', TOLLGATE_TLS_KEY: '/etc/tls.key' }
      t.same(readSettings(both, '/data').tls, { cert: '/data/tls.crt', key: '/etc/tls.key' })
      t.same(problemsOf({ TOLLGATE_TLS_CERT: 'tls.crt' }), ['TOLLGATE_TLS_KEY'])
      t.same(problemsOf({ TOLLGATE_TLS_KEY: 'tls.key' }), ['TOLLGATE_TLS_CERT'])
    })

    t.test('tollgate.yaml of the working folder is taken when it is there', async (t) => {
      const folder = t.testdir({ 'tollgate.yaml': '', 'other.yaml': '' })
      t.equal(readSettings({}, folder).configPath, join(folder, 'tollgate.yaml'))
      t.equal(readSettings({ TOLLGATE_CONFIG: 'other.yaml' }, folder).configPath, join(folder, 'other.yaml'))
      t.equal(readSettings({ TOLLGATE_CONFIG: '/etc/t.yaml' }, folder).configPath, '/etc/t.yaml')
    })

    t.test('everything set', async (t) => {
      const key = randomBytes(32)
      const settings = readSettings({
        TOLLGATE_HOST: '::',
        TOLLGATE_PORT: '0',
        TOLLGATE_PUBLIC_URL: 'https://gateway.example.com/',
        TOLLGATE_DATA_DIR: '/var/lib/tollgate',
        TOLLGATE_MASTER_KEY: key.toString('base64'),
        TOLLGATE_NEW_MASTER_KEY: key.toString('hex'),
        TOLLGATE_KEYS: 'hash',
        TOLLGATE_WORKERS: '4',
        TOLLGATE_ROLES: 'settler, gateway',
        DATABASE_URL: 'postgresql://u:p@one:5432,two:5432/tollgate',
        DATABASE_READ_URL:
          'postgresql://u:p@two:5432/tollgate?target_session_attrs=standby&sslmode=verify-full',
        TOLLGATE_DATABASE_OWNER_URL: 'postgresql://o:p@one/tollgate',
        NATS_URL: 'nats://one:4222,tls://two:4222',
        CLICKHOUSE_URL: 'http://u:p@clickhouse:8123',
        S3_ENDPOINT: 'http://minio:9000/',
        S3_BUCKET: 'b',
        S3_ACCESS_KEY_ID: 'i',
        S3_SECRET_ACCESS_KEY: 's',
        LOG_LEVEL: 'WARN',
      })
      t.match(settings, {
        host: '::',
        port: 0,
        publicUrl: 'https://gateway.example.com',
        console: { host: null },
        dataDir: '/var/lib/tollgate',
        keys: 'hash',
        workers: 4,
        roles: ['gateway', 'settler'],
        databaseUrl: 'postgresql://u:p@one:5432,two:5432/tollgate',
        databaseReadUrl:
          'postgresql://u:p@two:5432/tollgate?target_session_attrs=standby&sslmode=verify-full',
        databaseOwnerUrl: 'postgresql://o:p@one/tollgate',
        natsUrl: 'nats://one:4222,tls://two:4222',
        objectStore: { endpoint: 'http://minio:9000', region: 'us-east-1', bucket: 'b' },
        logLevel: 'warn',
      })
      t.same(settings.masterKey, key)
      t.same(settings.newMasterKey, key)
      t.same(readSettings({ TOLLGATE_MASTER_KEY: key.toString('hex') }).masterKey, key)
    })

    t.test('every wrong variable is named, with what to do and without its value', async (t) => {
      const wrong = {
        TOLLGATE_HOST: 'a b',
        TOLLGATE_PORT: 'tcp://10.0.0.7:80',
        TOLLGATE_PUBLIC_URL: 'gateway.example.com',
        TOLLGATE_MASTER_KEY: 'planted-secret',
        TOLLGATE_NEW_MASTER_KEY: 'planted-secret',
        TOLLGATE_KEYS: 'planted-secret',
        TOLLGATE_WORKERS: '0',
        TOLLGATE_ROLES: 'gateway,poller',
        DATABASE_URL: 'mysql://u:planted-secret@x/y',
        TOLLGATE_DATABASE_OWNER_URL: 'mysql://u:planted-secret@x/y',
        NATS_URL: 'http://u:planted-secret@x',
        CLICKHOUSE_URL: 'clickhouse://u:planted-secret@x',
        S3_ENDPOINT: 'minio:9000',
        LOG_LEVEL: 'loud',
      }
      t.same(problemsOf(wrong), Object.keys(wrong))
      t.throws(() => readSettings(wrong), { message: /openssl rand -hex 32/ })
      t.throws(() => readSettings(wrong), { message: /^(?!.*planted-secret)/s })
      for (const port of ['65536', '-1', '0x10', '1.5', '1e3'])
        t.same(problemsOf({ TOLLGATE_PORT: port }), ['TOLLGATE_PORT'])
    })

    t.test('a standby is read where a primary is named, of servers of a known kind', async (t) => {
      const url = 'postgres://u:p@one,two/x'
      t.same(problemsOf({ DATABASE_READ_URL: url }), ['DATABASE_READ_URL'])
      const given = {
        DATABASE_URL: `${url}?target_session_attrs=slave`,
        TOLLGATE_MASTER_KEY: '00'.repeat(32),
      }
      t.same(problemsOf(given), ['DATABASE_URL'])
    })

    t.test('a database of your own needs a master key of your own', async (t) => {
      t.same(problemsOf({ DATABASE_URL: 'postgres://x/y' }), ['TOLLGATE_MASTER_KEY'])
    })

    t.test('a bucket needs all of its settings', async (t) => {
      t.same(problemsOf({ S3_REGION: 'eu-central-1' }), [])
      const bucket = {
        S3_ENDPOINT: 'http://minio:9000/',
        S3_BUCKET: 'b',
        S3_ACCESS_KEY_ID: 'id',
        S3_SECRET_ACCESS_KEY: 'secret',
      }
      const { objectStore } = readSettings(bucket)
      t.match(objectStore, { endpoint: 'http://minio:9000', publicEndpoint: 'http://minio:9000' })
      const behindProxy = readSettings({ ...bucket, S3_PUBLIC_ENDPOINT: 'https://files.example.com' })
      t.equal(behindProxy.objectStore?.publicEndpoint, 'https://files.example.com')
      t.same(problemsOf({ S3_BUCKET: 'b', S3_ENDPOINT: 'http://minio:9000' }), [
        'S3_ACCESS_KEY_ID',
        'S3_SECRET_ACCESS_KEY',
      ])
    })

    t.test('the address on this machine', async (t) => {
      t.equal(localUrl('127.0.0.1', 1), 'http://127.0.0.1:1')
      t.equal(localUrl('0.0.0.0', 1), 'http://127.0.0.1:1')
      t.equal(localUrl('::', 1), 'http://[::1]:1')
      t.equal(localUrl('fe80::1', 1), 'http://[fe80::1]:1')
      t.equal(localUrl('gateway', 1), 'http://gateway:1')
    })

    t.test('a variable that is called nearly as a setting is likely misspelt', async (t) => {
      const env = {
        TOLLGATE_PROT: '80',
        TOLLGATE_DATADIR: '/var/lib/tollgate',
        TOLLGATE_PORT: '8080',
        TOLLGATE_KEY: 'sk-tollgate-1',
        TOLLGATE_OPENAI_API_KEY: 'for the configuration',
        TOLLGATE_SERVICE_HOST: '10.0.0.7',
        TOLLGATE_PORT_8080_TCP: 'tcp://10.0.0.7:8080',
        NATS_URI: '',
      }
      t.same(findMisspelledSettings(env), [
        { variable: 'TOLLGATE_PROT', meant: 'TOLLGATE_PORT' },
        { variable: 'TOLLGATE_DATADIR', meant: 'TOLLGATE_DATA_DIR' },
      ])
    })
  })

  t.test('secrets are masked and put back', async (t) => {
    // Secrets of a configuration are never shown, and a masked one is put back where it was.
    const TEXT = `# prices are ours
metrics: { token: 'metrics-secret' }
channels:
  - id: one # the first
    api_key: sk-one
    headers: { x-tenant: tenant-secret }
  - id: two
    api_key: \${TWO_KEY}
    headers:
      authorization: "Bearer two"
  - id: three
    auth: { type: aws-sigv4, region: eu-west-1, access_key_id: access-id, secret_access_key: access-secret }
sign_in:
  oidc:
    - id: company
      client_secret: oidc-secret
`
    const SECRETS = [
      'metrics-secret',
      'sk-one',
      'tenant-secret',
      'Bearer two',
      'access-id',
      'access-secret',
      'oidc-secret',
    ]

    t.test('no secret is shown, and all else stays as it is written', async (t) => {
      const shown = hideSecrets(TEXT)
      for (const secret of SECRETS) t.notMatch(shown, secret)
      t.equal(shown.split(MASK).length - 1, SECRETS.length)
      for (const kept of ['# prices are ours', '# the first', '${TWO_KEY}', 'x-tenant'])
        t.ok(shown.includes(kept), kept)
    })

    t.test('a masked secret is put back, also where its entry has moved', async (t) => {
      const shown = hideSecrets(TEXT)
      const put = restoreSecrets(shown, TEXT)
      for (const secret of SECRETS) t.ok(put.includes(secret), secret)
      t.equal(put, TEXT, 'with the quotes that it had')
      const two = `channels:\n  - { id: two, headers: { authorization: "${MASK}" } }\n  - { id: one, api_key: "${MASK}" }\n`
      t.equal(
        restoreSecrets(two, TEXT),
        two.replace(`"${MASK}"`, '"Bearer two"').replace(`"${MASK}"`, 'sk-one'),
      )
    })

    t.test('a secret of several lines is masked in one, and put back', async (t) => {
      const text = `channels:
  - id: one
    auth:
      type: google
      credentials: |
        {"type":
          "service_account"}
    models: { a: b }
  - id: two
    api_key: >-
      sk-two
`
      const shown = hideSecrets(text)
      t.same(parseDocument(shown).errors, [])
      t.notMatch(shown, 'service_account')
      t.same(parse(restoreSecrets(shown, text)), parse(text))
    })

    t.test('a list of secrets is put back as it was edited', async (t) => {
      const listed = (...keys: string[]) => `channels:\n  - id: one\n    api_keys: [${keys.join(', ')}]\n`
      const current = listed('sk-a', '${B_KEY}', 'sk-c', 'sk-d')
      const masked = /"[^"]+"/g
      const shown = hideSecrets(current)
      const [a = '', c = '', d = ''] = shown.match(masked) ?? []
      t.equal(shown, listed(a, '${B_KEY}', c, d))
      const put = (...keys: string[]) => restoreSecrets(listed(...keys), current)
      t.equal(put(a, '${B_KEY}', c, d), current, 'unchanged')
      t.equal(put(c, d), listed('sk-c', 'sk-d'), 'the earlier ones are removed')
      t.equal(put(d, c, a), listed('sk-d', 'sk-c', 'sk-a'), 'moved')
      t.equal(put('sk-new', d, a), listed('sk-new', 'sk-d', 'sk-a'), 'one is added in front')
      t.equal(put(`"${MASK}"`), listed(`"${MASK}"`), 'a mask that names none of them stays')
      t.equal(put(`"${MASK}9"`), listed(`"${MASK}9"`), 'a mask of a key that is not there stays')
    })

    t.test('a secret below entries without an id is put back where its entry is now', async (t) => {
      const current = 'proxies:\n  - { name: a, token: one }\n  - { name: b, token: two }\n'
      const [, second = ''] = hideSecrets(current).match(/"[^"]+"/g) ?? []
      const text = `proxies:\n  - { name: b, token: ${second} }\n`
      t.equal(restoreSecrets(text, current), text.replace(second, 'two'))
    })

    t.test('a mask without a secret in the file stays, and a new secret is taken', async (t) => {
      const text = `channels:\n  - { id: three, api_key: "${MASK}" }\n  - { id: one, api_key: sk-new }\n`
      t.equal(restoreSecrets(text, TEXT), text)
    })

    t.test('text that is no YAML is no error', async (t) => {
      for (const broken of ['{', 'a: [', '\t- x', '"', '']) t.equal(typeof hideSecrets(broken), 'string')
    })
  })
})
