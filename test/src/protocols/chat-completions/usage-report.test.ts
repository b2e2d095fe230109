/** A report of usage is believed when every count in it could be one. The rule, apart from the code, in zod. */
import fc from 'fast-check'
import t from 'tap'
import { z } from 'zod'
import { readUsage } from '../../../../src/protocols/usage/chat-completions.ts'
import { everyRun } from '../../../support/every-run.ts'

const count = z.number().nullish()
const report = z.looseObject({
  prompt_tokens: z.number().min(0).max(1_000_000_000).nullish(),
  completion_tokens: z.number().min(0).max(1_000_000_000).nullish(),
  prompt_tokens_details: z.looseObject({ cached_tokens: count, cache_write_tokens: count }).nullish(),
  completion_tokens_details: z.looseObject({ reasoning_tokens: count }).nullish(),
  server_tool_use: z.looseObject({ web_search_requests: count }).nullish(),
})

const odd = fc.constantFrom<unknown>(null, '7', true, {}, [], Number.POSITIVE_INFINITY, 1e10, -1)
const number = fc.oneof({ weight: 30, arbitrary: fc.oneof(fc.nat(50), fc.double({ min: 0, max: 9 })) }, odd)
const details = (...names: string[]) =>
  fc.oneof(
    {
      weight: 20,
      arbitrary: fc.record(Object.fromEntries(names.map((name) => [name, number])), { requiredKeys: [] }),
    },
    odd,
  )
const usage = fc.record(
  {
    prompt_tokens: number,
    completion_tokens: number,
    prompt_tokens_details: details('cached_tokens', 'cache_write_tokens', 'audio_tokens'),
    completion_tokens_details: details('reasoning_tokens'),
    server_tool_use: details('web_search_requests', 'web_fetch_requests'),
  },
  { requiredKeys: ['prompt_tokens', 'completion_tokens'] },
)

t.test('what the rule takes is read, and no part is more than the whole', async (t) => {
  let taken = 0
  everyRun(t, { seed: 3, numRuns: 1000 }, [usage], (value) => {
    const read = readUsage(value)
    const expected = report.safeParse(value)
    if (!expected.success) return read === null
    const { prompt_tokens, completion_tokens, prompt_tokens_details: prompt } = expected.data
    if (prompt_tokens == null && completion_tokens == null) return read === null
    taken++
    const whole = (n: number | null | undefined) => Math.floor(Math.max(0, n ?? 0))
    const cached = Math.min(whole(prompt_tokens), whole(prompt?.cached_tokens))
    const { extra, contradiction: _, ...counts } = read!
    t.ok((extra?.tools.web_search ?? 0) + (extra?.tools.url_context ?? 0) <= counts.serverToolCalls)
    t.strictSame(counts, {
      prompt: prompt_tokens == null ? null : whole(prompt_tokens),
      cached,
      cacheWrite: Math.min(whole(prompt_tokens) - cached, whole(prompt?.cache_write_tokens)),
      output: completion_tokens == null ? null : whole(completion_tokens),
      reasoning: Math.min(
        whole(completion_tokens),
        whole(expected.data.completion_tokens_details?.reasoning_tokens),
      ),
      serverToolCalls: Object.values(expected.data.server_tool_use ?? {})
        .filter((calls) => typeof calls === 'number' && calls >= 0 && calls <= 1_000_000_000)
        .reduce<number>((sum, calls) => sum + whole(calls as number), 0),
    })
    return true
  })
  t.ok(taken > 200, 'many were')
})

t.test('what is no object is no report', async (t) => {
  for (const value of [undefined, null, 1, 'x', [], [{ prompt_tokens: 1, completion_tokens: 1 }]])
    t.equal(readUsage(value), null)
})
