/** An attempt with little time left that runs out of it says nothing about its channel. See docs/api-rules.md, "Attempts". */
import t from 'tap'
import { CHAT_DEADLINE_MS } from '../../../pipelines/chat/forward/attempt-request.ts'
import { FAILURES_IN_A_ROW } from '../../../src/core/routing/circuit-breaker.ts'
import { RunningCall, type ScriptedUpstream, word } from './forward-support.ts'

const MS_PER_SECOND = 1000
const FULL_SECONDS = CHAT_DEADLINE_MS / MS_PER_SECOND

/** The ways in which an attempt runs out of time. */
const TIMEOUTS: Readonly<Record<string, (attempt: ScriptedUpstream) => void>> = {
  'before an answer': (attempt) => attempt.fail('deadline'),
  'during the answer': (attempt) => {
    attempt.head()
    attempt.data(word('once'))
    attempt.fail('deadline', { headReceived: true })
  },
}

/** Returns whether a timeout opens the breaker of a channel that has failed before. */
function opens(run: (attempt: ScriptedUpstream) => void, seconds: number, ageMs: number): boolean {
  const call = new RunningCall({ ageMs, channelFields: { only: { timeout_seconds: seconds } } })
  for (let i = 0; i < FAILURES_IN_A_ROW - 1; i++) call.health.failed('only')
  run(call.attempt)
  if (call.settlement.error_code !== 'upstream_timeout') throw new Error('it did not run out of time')
  return call.health.breaker('only') === 'open'
}

for (const [name, run] of Object.entries(TIMEOUTS))
  t.test(`a timeout ${name} counts against a channel that had half of its time`, async (t) => {
    t.ok(opens(run, FULL_SECONDS, 0))
    t.ok(opens(run, FULL_SECONDS, 0.4 * CHAT_DEADLINE_MS))
    t.notOk(opens(run, FULL_SECONDS, 0.6 * CHAT_DEADLINE_MS))
    t.ok(opens(run, FULL_SECONDS / 3, 0.6 * CHAT_DEADLINE_MS), 'a shorter time, which it had')
    t.notOk(opens(run, FULL_SECONDS / 3, 0.9 * CHAT_DEADLINE_MS))
    t.ok(opens(run, 3 * FULL_SECONDS, 0), 'a longer time, which no call has')
  })

t.test('any other failure counts, however little time was left', async (t) => {
  const call = new RunningCall({ ageMs: 0.9 * CHAT_DEADLINE_MS })
  for (let i = 0; i < FAILURES_IN_A_ROW - 1; i++) call.health.failed('only')
  call.attempt.fail('reset')
  t.equal(call.health.breaker('only'), 'open')
})
