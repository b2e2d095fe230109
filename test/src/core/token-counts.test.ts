/** Counts of tokens: as texts are estimated, as several reports are added, and as a doubtful report is charged. */
import t from 'tap'
import { modelEntry, pricing } from '../../../schemas/config/catalog.ts'
import { printCredits } from '../../../schemas/money.ts'
import { chargeTokens } from '../../../src/core/pricing/charge.ts'
import {
  countStoredTokens,
  dearest,
  type EstimatedCall,
  estimateAt,
  estimateCharge,
  estimateUnreportedPrompt,
  laterBytesIn,
} from '../../../src/core/pricing/estimate.ts'
import { tokenPrice } from '../../../src/core/pricing/pricing.ts'
import * as textTokens from '../../../src/core/pricing/text-tokens.ts'
import {
  type ExtraUsage,
  keepExtra,
  largerExtra,
  MAX_REPORTED_TOKENS,
  NO_EXTRA,
  NO_USAGE,
  promptReadAtOnce,
  sumUsage,
} from '../../../src/core/pricing/usage.ts'
import { chooseTrustedTier, countEstimatedToolCalls } from '../../../src/core/pricing/usage-bounds.ts'

const NO_LINKS = { image: 0, file: 0, audio: 0 }

t.test('a text is estimated by its bytes and its script', async (t) => {
  t.test('four bytes are a token, a begun one counts', async (t) => {
    for (const [bytes, tokens] of [
      [0, 0],
      [1, 1],
      [4, 1],
      [5, 2],
    ] as const) {
      t.equal(textTokens.estimateInputTokens(bytes), tokens)
      t.equal(textTokens.estimateOutputTokens(bytes), tokens)
    }
    t.equal(textTokens.bytesOfTokens(3), 12)
  })

  t.test('a later byte of a character adds an eighth of a token', async (t) => {
    for (const [text, laterBytes, tokens] of [
      ['', 0, 0],
      ['abcd', 0, 1],
      ['\u0436'.repeat(8), 8, 5],
      ['\u4e2d', 2, 1],
      ['\u4e2d\u4e2d', 4, 2],
      ['\u{1f600}', 3, 2],
    ] as const) {
      const bytes = Buffer.from(text)
      t.equal(laterBytesIn(bytes), laterBytes, text)
      t.equal(textTokens.estimatePromptTokens(bytes.length, laterBytes), tokens, text)
    }
  })

  t.test('a code unit weighs by its script, the first half of a pair for both', async (t) => {
    for (const [unit, weight] of [
      [0x7f, 1],
      [0x80, 2.5],
      [0x7ff, 2.5],
      [0x800, 4],
      [0xd7ff, 4],
      [0xd800, 5.5],
      [0xdbff, 5.5],
      [0xdc00, 0],
      [0xdfff, 0],
      [0xe000, 4],
    ] as const)
      t.equal(textTokens.weighCodeUnit(unit), weight, unit.toString(16))
    t.equal(textTokens.LATER_BYTE_CHARACTERS, 1.5)
  })

  t.test('a hexadecimal digit in either case', async (t) => {
    for (let value = 0; value < 16; value++)
      for (const digit of [value.toString(16), value.toString(16).toUpperCase()])
        t.equal(textTokens.hexDigit(digit.charCodeAt(0)), value, digit)
  })

  t.test('characters of a JSON string, each escape as its character', async (t) => {
    for (const [text, characters, end] of [
      ['abc" and more', 3, 3],
      ['a b!"', 4, 4],
      ['a\\n\\"b"', 4, 6],
      ['\\u4e2d\\u00e9\\ud83d\\ude00\\u0041"', 4 + 2.5 + 5.5 + 1, 30],
      ['\u4e2d\u00e9"', 4 + 2.5, 5],
      ['a\nb"', 1, 1],
      ['a\u001fb"', 1, 1],
      ['no end', 6, 6],
      ['\\', 1, 2],
      ['\\u4e', 4, 6],
      ['', 0, 0],
    ] as const) {
      const bytes = Buffer.from(text)
      const measured = end > bytes.length ? Buffer.concat([bytes, Buffer.from('2d')]) : bytes
      t.equal(textTokens.countCharacters(measured, 0, bytes.length), characters, text)
      t.equal(textTokens.countedTo, end, text)
    }
    t.equal(textTokens.countCharacters(Buffer.from('"abc"'), 1, 3), 2, 'from its start, up to its end')
  })
})

t.test('what no upstream reported is estimated', async (t) => {
  const model = modelEntry.parse({
    id: 'm',
    estimate: { image_tokens: 10, file_tokens: 200, audio_tokens: 3000, server_tool_calls: 2 },
  })

  t.test(
    'a prompt: its bytes, or the parts within it as if they were links, whichever is less',
    async (t) => {
      const estimate = (promptBytes: number, links: object, laterBytes = 0) =>
        estimateUnreportedPrompt(model, { promptBytes, links: { ...NO_LINKS, ...links } }, laterBytes)
      t.equal(estimate(40, {}), 10)
      t.equal(estimate(40, {}, 8), 11)
      t.equal(estimate(40, { image: 2, file: 1, audio: 1 }), 10 + 20 + 200 + 3000)
      const inline = (bytes: number) => ({ inline: { ...NO_LINKS, image: 1, bytes } })
      t.equal(estimate(4040, inline(4000)), 10 + 10, 'a large picture')
      t.equal(estimate(60, inline(20)), 15, 'a small one')
      t.equal(estimate(4040, { ...inline(4000), image: 1 }, 8), 11 + 10 + 10)
    },
  )

  t.test('the most that a later call can read of this one', async (t) => {
    const call = { promptBytes: 40, outputLimit: 7, links: { ...NO_LINKS, image: 1 } }
    t.equal(countStoredTokens(model, call), 10 + 10 + 7)
    t.equal(countStoredTokens(model, { ...call, thinkingTokens: 100 }), 10 + 10 + 7 + 100)
    t.equal(countStoredTokens(model, { ...call, outputLimit: null }), 10 + 10 + 32_768)
    const short = modelEntry.parse({ ...model, max_output_tokens: 500 })
    t.equal(countStoredTokens(short, { ...call, outputLimit: null }), 10 + 10 + 500)
  })

  t.test('calls of tools', async (t) => {
    const count = (builtInTools: EstimatedCall['builtInTools'], toolCallLimit: number | null = null) =>
      countEstimatedToolCalls(model, { builtInTools, toolCallLimit, outputLimit: null, choices: 1 })
    t.equal(count([]), 2, 'some models search unprompted')
    t.equal(count(['web_search']), 2)
    t.equal(count(['web_search', 'mcp']), 4)
    t.equal(count(['web_search', 'mcp'], 3), 3)
    t.equal(count([], 1), 2)
  })

  const call: EstimatedCall = {
    ...{ conversationBytes: 40, promptBytes: 40, outputLimit: 7, choices: 1 },
    ...{ builtInTools: [], toolCallLimit: null, links: NO_LINKS },
  }
  const WORST = { mode: 'worst_case', now: 0 } as const

  t.test('a call that is charged by its units', async (t) => {
    const searched = pricing.parse({ unit: 'search', per_unit: '0.5' })
    const estimate = (more: Partial<EstimatedCall>) =>
      printCredits(estimateAt({ price: null, pricing: searched }, model, { ...call, ...more }, WORST))
    t.equal(estimate({ units: { count: 3 } }), '1.5')
    t.equal(estimate({}), '0')
    const tokens = pricing.parse({ unit: '1M_tokens', input: '1000000', output: '0' })
    t.equal(
      printCredits(estimateAt({ price: tokenPrice(tokens), pricing: tokens }, model, call, WORST)),
      '10',
    )
  })

  t.test('tools that have a separate price: the dearest run first', async (t) => {
    const prices = { input: '0', output: '0', server_tool_call: '1' }
    const builtInTools = ['mcp', 'code_interpreter', 'web_search'] as const
    const estimate = (own: object, toolCallLimit: number | null) => {
      const price = tokenPrice(pricing.parse({ unit: '1M_tokens', ...prices, server_tools: own }))!
      return printCredits(estimateCharge(price, model, { ...call, builtInTools, toolCallLimit }, WORST))
    }
    t.same(
      [null, 5, 4, 3, 2, 1, 0].map((limit) => estimate({ web_search: '5', mcp: '0.1' }, limit)),
      ['12.2', '12.1', '12', '11', '10', '5', '0'],
    )
    t.equal(estimate({ web_search: '5' }, 2), '10', 'even if only one has a separate price')
  })

  t.test('links that are sound or pictures at their own prices', async (t) => {
    const prices = { input: '1000000', output: '0', input_audio: '3000000', input_image: '2000000' }
    const price = tokenPrice(pricing.parse({ unit: '1M_tokens', ...prices }))!
    const estimate = (links: object) =>
      printCredits(estimateCharge(price, model, { ...call, links: { ...NO_LINKS, ...links } }, WORST))
    t.same([{}, { image: 1 }, { audio: 1 }, { file: 1 }].map(estimate), ['10', '30', '9010', '210'])
  })

  t.test('the dearer of the requested tier and the usual one', async (t) => {
    const prices = { input: '1000000', output: '0', service_tiers: { flex: '0.5', priority: '2' } }
    const price = tokenPrice(pricing.parse({ unit: '1M_tokens', ...prices }))!
    const estimate = (serviceTier?: string) =>
      printCredits(estimateCharge(price, model, { ...call, ...(serviceTier && { serviceTier }) }, WORST))
    t.same([undefined, 'flex', 'priority', 'fast', 'other'].map(estimate), ['10', '10', '20', '20', '10'])
  })

  t.test('the dearest of several', async (t) => {
    t.equal(dearest([]), 0n)
    t.equal(dearest([2n, 5n, 3n]), 5n)
  })
})

t.test('counts of several reports', async (t) => {
  const EXTRA: ExtraUsage = {
    ...{ cacheWrite1h: 1, inputAudio: 2, inputImage: 3, outputAudio: 4, outputImage: 5 },
    tools: { web_search: 6 },
  }

  t.test('few calls have counts besides the usual ones', async (t) => {
    t.equal(MAX_REPORTED_TOKENS, 1_000_000_000)
    t.same(keepExtra({}), {})
    t.same(keepExtra({ ...NO_EXTRA }), {})
    for (const [name, count] of Object.entries(EXTRA))
      t.same(keepExtra({ [name]: count }), { extra: { ...NO_EXTRA, [name]: count } }, name)
    const compaction = { count: 1, largestPrompt: 9 }
    t.same(keepExtra({ compaction }), { extra: { ...NO_EXTRA, compaction } })
  })

  t.test('the price for long prompts goes by the most that was read at once', async (t) => {
    t.equal(promptReadAtOnce({ prompt: 7 }), 7)
    t.equal(promptReadAtOnce({ prompt: 7, extra: EXTRA }), 7)
    t.equal(promptReadAtOnce({ prompt: 7, ...keepExtra({ compaction: { count: 1, largestPrompt: 5 } }) }), 5)
  })

  t.test('what several models used is added', async (t) => {
    const one = { prompt: 1, cached: 2, cacheWrite: 3, output: 4, reasoning: 5, serverToolCalls: 6 }
    t.same(sumUsage([]), NO_USAGE)
    t.same(sumUsage([one, one, NO_USAGE]), {
      ...{ prompt: 2, cached: 4, cacheWrite: 6, output: 8, reasoning: 10, serverToolCalls: 12 },
    })
    const written = (cacheWrite1h: number, tools: ExtraUsage['tools'] = {}) => ({
      ...one,
      ...keepExtra({ cacheWrite1h, tools }),
    })
    t.match(sumUsage([written(3), one, written(4, { mcp: 1 })]).extra, { cacheWrite1h: 7, tools: { mcp: 1 } })
  })

  t.test('of two reports of one call the larger counts hold', async (t) => {
    t.equal(largerExtra(undefined, undefined), undefined)
    t.equal(largerExtra(EXTRA, undefined), EXTRA)
    t.equal(largerExtra(undefined, EXTRA), EXTRA)
    for (const name of ['cacheWrite1h', 'inputAudio', 'inputImage', 'outputAudio', 'outputImage'] as const) {
      const more = { ...EXTRA, [name]: 9 }
      t.same([largerExtra(EXTRA, more), largerExtra(more, EXTRA)], [more, more], name)
    }
    const searched = (tools: ExtraUsage['tools']) => ({ ...EXTRA, tools })
    t.same(largerExtra(searched({ mcp: 1, web_search: 3 }), searched({ mcp: 2, web_search: 2 }))?.tools, {
      ...{ mcp: 2, web_search: 3 },
    })
    t.same(largerExtra(searched({}), searched({ mcp: 2 }))?.tools, { mcp: 2 })
    const [before, after] = [1, 2].map((count) => ({ ...EXTRA, compaction: { count, largestPrompt: count } }))
    t.same(largerExtra(before, EXTRA), before)
    t.same(largerExtra(EXTRA, after), after)
    t.same(largerExtra(before, after), after)
    t.notOk('compaction' in largerExtra(EXTRA, EXTRA)!)
  })
})

t.test('a report that contradicts itself', async (t) => {
  const fields = {
    ...{ input: '1000000', output: '2000000', server_tool_call: '7' },
    service_tiers: { flex: '0.5', priority: '3', rush: '2', turbo: '3' },
  }
  const price = tokenPrice(pricing.parse({ unit: '1M_tokens', ...fields }))!
  const model = modelEntry.parse({ id: 'm', context_window: 1000, max_output_tokens: 100 })

  t.test('is charged in no tier that is dearer than the estimate', async (t) => {
    for (const [reported, requested, charged] of [
      ['flex', '', 'flex'],
      ['default', '', 'default'],
      ['default', 'flex', 'default'],
      ['priority', 'default', ''],
      ['turbo', 'priority', 'turbo'],
      ['priority', '', ''],
      ['priority', 'flex', ''],
      ['priority', 'rush', 'rush'],
      ['priority', 'priority', 'priority'],
      ['rush', 'priority', 'rush'],
      ['fast', '', ''],
    ] as const)
      t.equal(chooseTrustedTier(price, reported, requested, 0), charged, `${reported} for ${requested}`)
  })

  const charge = (more: object = {}, call: object = {}) =>
    chargeTokens({
      ...{ model, price, submittedAt: 0, source: 'upstream', contradictions: '', serviceTier: '' },
      call: {
        ...{ promptBytes: 40, links: NO_LINKS, outputLimit: null, choices: 1 },
        ...{ builtInTools: [], toolCallLimit: null, ...call },
      },
      used: { ...NO_USAGE, prompt: 50, output: 9 },
      reported: { ...NO_USAGE, prompt: 50, output: 9 },
      characters: () => 8,
      ...more,
    })

  t.test('is charged up to what was delivered', async (t) => {
    t.match(charge(), { cost: 6_800_000_000n, usage: { prompt: 50, output: 9 }, suspect: '' })
    const doubtful = { contradictions: 'total 3 != 59' }
    t.match(charge(doubtful), {
      cost: 1_400_000_000n,
      usage: { prompt: 10, output: 2 },
      suspect: 'total 3 != 59',
    })
    const linked = charge(doubtful, { links: { ...NO_LINKS, image: 1 } })
    t.match(linked.usage, { prompt: 50 }, 'a picture by its link was delivered too')
    const used = { ...NO_USAGE, prompt: 5, output: 1, serverToolCalls: 5 }
    t.match(charge({ ...doubtful, used }).usage, { prompt: 5, output: 1, serverToolCalls: 3 })
  })

  t.test('names each count that no call can have', async (t) => {
    const reported = { ...NO_USAGE, prompt: 1001, output: 101 }
    const suspect = 'prompt 1001 > 1000, output 101 > 100'
    const beyond = charge({ used: reported, reported })
    t.equal(beyond.suspect, suspect)
    t.match(beyond.usage, { prompt: 10, output: 2 })
    const both = charge({ used: reported, reported, contradictions: 'total 3' })
    t.equal(both.suspect, `total 3, ${suspect}`)
    t.match(
      charge({ used: reported, reported: null, source: 'estimate' }),
      { suspect: '', usage: { prompt: 1000, output: 100 } },
      'an estimate is no fault of the upstream',
    )
    t.equal(charge({ used: reported }).suspect, '', 'nor is one beside a report without fault')
    t.equal(charge({ reported }).suspect, '', 'nor is what is not charged')
  })

  t.test('has the tier in which it was charged, and its prices', async (t) => {
    t.match(charge({ serviceTier: 'priority' }), { serviceTier: 'priority', cost: 20_400_000_000n })
    const doubtful = charge({ serviceTier: 'priority', contradictions: 'total 3' }, { serviceTier: 'rush' })
    t.match(doubtful, { serviceTier: 'rush', cost: 2_800_000_000n })
    t.equal(JSON.parse(doubtful.terms!).service_tier, 'rush')
    t.equal(charge({ contradictions: 'total 3' }, { serviceTier: 'rush' }).serviceTier, '', 'none was named')
    t.equal(charge({ source: 'none' }).terms, null)
  })
})
