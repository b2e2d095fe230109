/** Log probabilities come where a request asks for them, in each dialect that has them. */
import t, { type Test } from 'tap'
import { askChat, askGenerateContent, askResponses, eventsOf, type Json, jsonOf } from './dialects-support.ts'
import { simulatorFor } from './support.ts'

const { url } = await simulatorFor(t)

const TOP = 3
const SAYS = '@tokens=5'

interface Token {
  readonly token: string
  readonly logprob: number
  readonly bytes: readonly number[]
  readonly top_logprobs: readonly Omit<Token, 'top_logprobs'>[]
}

const listOf = (value: unknown) => (value ?? []) as readonly Json[]
const tokensOf = (value: unknown) => (value ?? []) as readonly Token[]

/** The tokens are the text; each is the likeliest, and no more than certain together with the others. */
function checkTokens(t: Test, tokens: readonly Token[], text: unknown): void {
  t.equal(tokens.map(({ token }) => token).join(''), text)
  for (const { token, logprob, bytes, top_logprobs: top } of tokens) {
    t.same(Buffer.from(bytes).toString(), token)
    t.equal(top.length, TOP)
    t.match(top[0], { token, logprob })
    t.equal(new Set(top.map((other) => other.token)).size, TOP)
    t.same(
      top.map((other) => other.logprob),
      top.map((other) => other.logprob).toSorted((a, b) => b - a),
    )
    t.ok(top.reduce((sum, other) => sum + Math.exp(other.logprob), 0) <= 1)
  }
}

t.test('chat-completions', async (t) => {
  const fields = { logprobs: true, top_logprobs: TOP, n: 2 }
  const whole = jsonOf(await askChat(url, SAYS, { fields }))
  for (const choice of listOf(whole.choices))
    checkTokens(t, tokensOf(choice.logprobs?.content), choice.message?.content)
  const streamed = eventsOf((await askChat(url, SAYS, { fields, stream: true })).body)
  const chunks = streamed.flatMap(({ data }) => listOf(data.choices))
  for (const [index, choice] of listOf(whole.choices).entries()) {
    const own = chunks.filter((chunk) => Number(chunk.index) === index)
    t.same(
      own.flatMap((chunk) => tokensOf(chunk.logprobs?.content)),
      choice.logprobs?.content,
    )
  }
  const alone = jsonOf(await askChat(url, SAYS, { fields: { logprobs: true } }))
  t.same(tokensOf(listOf(alone.choices)[0]?.logprobs?.content)[0]?.top_logprobs, [])
  const [unasked] = listOf(jsonOf(await askChat(url, SAYS)).choices)
  t.equal(unasked?.logprobs, null)
  t.equal(unasked?.message?.content, listOf(alone.choices)[0]?.message?.content, 'the words are the same')
  t.equal((await askChat(url, SAYS, { fields: { logprobs: true, top_logprobs: 21 } })).status, 400)
})

t.test('responses', async (t) => {
  const fields = { include: ['message.output_text.logprobs'], top_logprobs: TOP }
  const whole = jsonOf(await askResponses(url, SAYS, { fields }))
  const part = listOf(listOf(whole.output)[0]?.content)[0]
  checkTokens(t, tokensOf(part?.logprobs), part?.text)
  const events = eventsOf((await askResponses(url, SAYS, { fields, stream: true })).body)
  t.same(events.at(-1)?.data.response, whole)
  const deltas = events.filter(({ event }) => event === 'response.output_text.delta')
  t.same(
    deltas.map(({ data }) => tokensOf(data.logprobs).map(({ token }) => token)),
    deltas.map(({ data }) => [data.delta]),
  )
  const unasked = jsonOf(await askResponses(url, SAYS, { fields: { top_logprobs: TOP } }))
  t.same(listOf(listOf(unasked.output)[0]?.content)[0]?.logprobs, [])
  t.equal((await askResponses(url, SAYS, { fields: { top_logprobs: 21 } })).status, 400)
})

t.test('generate-content', async (t) => {
  const fields = { generationConfig: { responseLogprobs: true, logprobs: TOP } }
  const ask = askGenerateContent('?alt=sse')
  const [candidate] = listOf(jsonOf(await ask(url, SAYS, { fields })).candidates)
  const { chosenCandidates, topCandidates } = candidate?.logprobsResult ?? {}
  const chosen = listOf(chosenCandidates)
  t.equal(chosen.map(({ token }) => token).join(''), listOf(candidate?.content?.parts)[0]?.text)
  t.same(
    listOf(topCandidates).map(({ candidates }) => listOf(candidates).length),
    chosen.map(() => TOP),
  )
  const sum = chosen.reduce((total, { logProbability }) => total + Number(logProbability), 0)
  t.ok(Math.abs(Number(candidate?.avgLogprobs) - sum / chosen.length) < 1e-9)
  const events = eventsOf((await ask(url, SAYS, { fields, stream: true })).body)
  const sent = events.flatMap(({ data }) =>
    listOf(listOf(data.candidates)[0]?.logprobsResult?.chosenCandidates),
  )
  t.same(sent, chosen)
  const [unasked] = listOf(jsonOf(await ask(url, SAYS)).candidates)
  t.notOk('logprobsResult' in (unasked ?? {}))
})
