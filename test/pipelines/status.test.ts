/** `GET /v1/status` from memory: how often it reads the engines, and what it says of each share. */
import { firstValueFrom } from 'rxjs'
import t from 'tap'
import { showStatus } from '../../pipelines/status.ts'
import { Failure } from '../../schemas/failure.ts'
import type { ServiceStatus } from '../../schemas/status.ts'
import { serviceStatus } from '../../schemas/status.ts'
import { DAY_MS } from '../../src/core/call-log/window.ts'
import type { Catalog } from '../../src/core/routing/catalog.ts'

const NOON = Date.UTC(2026, 10, 29, 12)
const MINUTE_MS = 60_000

const catalog = {
  models: [
    { id: 'a', entry: { callable: true, display_name: 'A' } },
    { id: 'b', entry: { callable: false } },
  ],
  isServed: () => true,
} as unknown as Catalog

function openStatus() {
  const state = {
    now: NOON,
    isDown: false,
    outcomes: { succeeded: 0, failed: 0 },
    reads: 0,
    days: [] as number[],
    /** Holds the next reads until it is called. */
    release: null as Promise<void> | null,
  }
  const answer = async <T>(value: T): Promise<T> => {
    await state.release
    if (state.isDown) throw new Failure('service_unavailable', 'The call log is down.')
    return value
  }
  const handler = showStatus({
    catalog: () => catalog,
    now: () => state.now,
    statusNotes: { list: () => answer([]) },
    callLog: {
      readModelOutcomes: () => {
        state.reads++
        const { outcomes } = state
        return answer(
          outcomes.succeeded + outcomes.failed === 0 ? [] : [{ model: 'a', ...outcomes, newest: outcomes }],
        )
      },
      sumModelDays: ({ from, to }) => {
        state.days.push((to - from) / DAY_MS)
        const yesterday = { model: 'a', day: '2026-11-28', succeeded: 1999, failed: 1 }
        return answer(from < Date.UTC(2026, 10, 28) ? [yesterday] : [])
      },
    },
  })
  const read = async (): Promise<ServiceStatus> => {
    const reply = await firstValueFrom(handler({} as never))
    return serviceStatus.parse(JSON.parse(String((reply as { readonly body?: unknown }).body)))
  }
  return { state, read }
}

t.test('status', async (t) => {
  t.test('many who ask at once cause one reading, and none within ten seconds', async (t) => {
    const { state, read } = openStatus()
    await Promise.all(Array.from({ length: 100 }, read))
    state.now += 9_999
    await read()
    t.equal(state.reads, 1)
    state.now += 1
    await Promise.all(Array.from({ length: 100 }, read))
    t.equal(state.reads, 2)
  })

  t.test('an answer of less than a minute is given at once; who asks later waits', async (t) => {
    const { state, read } = openStatus()
    const first = await read()
    const { promise, resolve } = Promise.withResolvers<void>()
    state.release = promise
    state.now += 30_000
    t.equal((await read()).measured_at, first.measured_at)
    resolve()
    await new Promise(setImmediate)
    t.not((await read()).measured_at, first.measured_at)
    state.now += 2 * MINUTE_MS
    t.equal((await read()).measured_at, new Date(state.now).toISOString())
  })

  t.test('the days before today are read once in an hour, and at midnight', async (t) => {
    const { state, read } = openStatus()
    await read()
    state.now += 59 * MINUTE_MS
    await read()
    t.same(state.days, [29, 1, 1])
    state.now += MINUTE_MS
    await read()
    t.same(state.days.slice(3), [29, 1])
    state.now = Date.UTC(2026, 10, 30)
    const { models } = await read()
    t.same(state.days.slice(5), [29, 1])
    t.match(models[0]!.days.at(-1), { date: '2026-11-30', success_rate: null })
    t.match(models[0]!.days.at(-3), { date: '2026-11-28', success_rate: 99.9 }, 'rounded down')
  })

  t.test('while the log is down, the last answer stays; before the first, it is 503', async (t) => {
    const { state, read } = openStatus()
    state.isDown = true
    await t.rejects(read(), { code: 'service_unavailable' })
    await t.rejects(read(), { code: 'service_unavailable' })
    t.equal(state.reads, 1, 'it is not asked again at once')
    state.isDown = false
    state.now += 10_000
    const known = await read()
    state.isDown = true
    state.now += 10 * MINUTE_MS
    t.strictSame(await read(), known)
  })

  t.test('the status follows from the newest calls', async (t) => {
    const { state, read } = openStatus()
    for (const [succeeded, failed, status, rate] of [
      [0, 1, 'failing', 0],
      [49, 51, 'failing', 49],
      [1, 1, 'degraded', 50],
      [94, 6, 'degraded', 94],
      [95, 5, 'operational', 95],
      [2, 0, 'operational', 100],
      [0, 0, 'no_recent_calls', null],
    ] as const) {
      state.outcomes = { succeeded, failed }
      state.now += 2 * MINUTE_MS
      const answer = await read()
      t.match(answer.models, [{ id: 'a', display_name: 'A', status, success_rate: rate }])
      t.equal(answer.models.length, 1, 'placeholders have no status')
      t.equal(answer.status, status)
    }
  })
})
