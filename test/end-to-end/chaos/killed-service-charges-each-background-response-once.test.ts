/**
 * The service is killed with responses in every step of their way, and its processes at random instants: each is
 * submitted once at most, has one row, and is charged once what its upstream reports; no hold stays open.
 * See docs/failure-modes.md, "Money", row 70.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { isFinal, type TaskState } from '../../../schemas/tasks/task.ts'
import type { Sql } from '../../../src/postgres/connection.ts'
import { Random } from '../../simulation/random.ts'
import { connectTo, untilCopied, verifyWallets } from '../../support/connections.ts'
import { eventually, startService, type TestService, until } from '../../support/service.ts'
import {
  endUpstream,
  expectedBalance,
  forgettingKilled,
  holdBooking,
  killChild,
  restart,
  waitingForBooking,
} from '../media/chaos/crashes.ts'
import { configOf, simulated } from '../protocols/support.ts'
import { balanceOf, post } from '../support.ts'
import { seedNote, seeds, TIMEOUT_MS } from './plan.ts'

const CREDIT = '1000000'
const CONFIG = configOf({ kept: {} }, [
  simulated('responses', { kept: 'sim-kept' }, { keeps_responses_days: 30 }),
])
const PATH = '/v1/responses'
/** Each word of an answer is a token, and costs 2 credits; a token of the prompt costs 1. */
const OUTPUT_TOKENS = 6
const SIMULATE = `tokens=${OUTPUT_TOKENS}`
const AT_RANDOM = 12
const SPREAD_MS = 1_000
const VICTIMS = ['tasks', 'gateway', 'all'] as const
const BETWEEN_KILLS_MS = [100, 500] as const
const AGAIN_AFTER_MS = 200

interface Line {
  readonly id: string
  readonly state: TaskState
  /** Tells which intent it is. */
  readonly limit: number
  readonly request_id: string
  readonly upstream_id: string | null
  readonly usage: { readonly prompt: number; readonly output: number } | null
}

const NAMED = ['hang', 'cut', 'stuck', 'off', 'done']
const limitOf = (intent: string): number => 65 + NAMED.indexOf(intent.replace('intent-', ''))

const linesOf = (sql: Sql) => sql<Line[]>`
  SELECT id, state, (job #>> '{call,outputLimit}')::int AS limit, request_id, upstream_id, result #> '{response,usage}' AS usage FROM tasks ORDER BY id`

/** Asks until there is an answer that asking again would not change. */
async function insisted(
  service: TestService,
  key: string,
  intent: string,
  simulate: string,
): Promise<unknown> {
  for (;;) {
    const response = await begun(service, key, intent, simulate).catch(() => null)
    if (response !== null && response.status < 500 && response.status !== 409) return response.json()
    await sleep(AGAIN_AFTER_MS)
  }
}

function begun(service: TestService, key: string, intent: string, simulate: string): Promise<Response> {
  const input = `${intent} [simulate: id=${intent}, ${SIMULATE}, ${simulate}]`
  const body = { model: 'kept', background: true, max_output_tokens: limitOf(intent), input }
  return post(service, key, PATH, body, { 'idempotency-key': intent })
}

async function checkBooks(t: Test, service: TestService, sql: Sql, accountId: string, key: string) {
  const lines = await linesOf(sql)
  const rows = await sql<{ task_id: string; cost: bigint; status: string; request_id: string }[]>`
    SELECT task_id, cost, status, request_id FROM usage_rows WHERE task_id IS NOT NULL`
  t.equal(rows.length, lines.length, 'one row for each')
  const byTask = new Map(rows.map((row) => [row.task_id, row]))
  const wrong = lines.filter(({ id, state, usage, request_id }) => {
    const row = byTask.get(id)
    const cost = BigInt((usage?.prompt ?? 0) + 2 * (usage?.output ?? 0)) * 100_000_000n
    const isRight = row?.cost === cost && row.request_id === request_id
    return !isRight || (row.status === 'success') !== (state === 'succeeded')
  })
  t.same(wrong, [], 'each is charged what its upstream reports')
  t.match(await balanceOf(service, key), await expectedBalance(sql, accountId))
  const [open] = await sql`SELECT count(*)::int AS count FROM holds WHERE state = 'open'`
  t.same(open, { count: 0 }, 'no hold is open')
  const submits = (await (
    await fetch(`${service.engines.simulatorUrl}/simulator/submits?dialect=responses`)
  ).json()) as { task_id: string | null }[]
  t.ok(submits.length <= lines.length, 'no submit was sent twice')
  const known = new Set(lines.map(({ upstream_id }) => upstream_id))
  const unknown = submits.filter(({ task_id: id }) => id !== null && !known.has(id)).length
  const lost = lines.filter(({ upstream_id }) => upstream_id === null).length
  t.ok(unknown <= lost, 'what was made and is not known here is of a submit that was lost')
  await untilCopied(sql)
  t.same((await verifyWallets(service)).differences, [], 'the audit of the wallets finds no difference')
}

t.setTimeout(TIMEOUT_MS)
for (const seed of seeds())
  await t.test(seedNote(seed), async (t) => {
    const random = new Random(seed)
    const service = await startService(t, { config: CONFIG })
    const sql = connectTo(t, service.engines.databaseUrl, 3)
    const { key, accountId } = await service.newKey(CREDIT)
    const untilLines = (what: string, isMeant: (lines: readonly Line[]) => boolean) =>
      eventually(what, async () => {
        const lines = await linesOf(sql)
        return isMeant(lines) ? lines : undefined
      })
    const allEnded = async (count: number) => {
      const isOver = (lines: readonly Line[]) =>
        lines.length >= count && lines.every(({ state }) => isFinal(state))
      return untilLines('all have ended', isOver)
    }
    const stateOf = (lines: readonly Line[], intent: string) =>
      lines.find((line) => line.limit === limitOf(intent))?.state

    await t.test('killed with a response in every step', async (t) => {
      const steps = {
        'intent-hang': ['fault=hang', 'submitting', 'refused'],
        'intent-cut': ['fault=hang:0', 'submitting', 'refused'],
        'intent-stuck': ['outcome=stuck, queue=0', 'running', 'succeeded'],
        'intent-off': ['outcome=stuck, queue=0', 'running', 'cancelled'],
      } as const
      const cut = Object.entries(steps).map(([intent, [simulate]]) =>
        begun(service, key, intent, simulate).catch(() => null),
      )
      await untilLines('each is at its step', (lines) =>
        Object.entries(steps).every(([intent, [, state]]) => stateOf(lines, intent) === state),
      )
      const letBook = await holdBooking(sql)
      // Cancelled at its upstream, and the charge for what was used waits to be booked.
      cut.push(post(service, key, `${PATH}/intent-off/cancel`, '').catch(() => null))
      cut.push(begun(service, key, 'intent-done', 'delay=0').catch(() => null))
      await until('two ends wait', async () => (await waitingForBooking(sql)) >= 2)
      await service.kill()
      const killed = { gateway: Date.now(), tasks: Date.now() }
      await Promise.all(cut)
      await letBook()
      await service.start()
      Object.assign(forgettingKilled(t, sql), killed)
      await endUpstream(service, 'intent-stuck')
      const lines = await allEnded(5)
      const expected = { ...steps, 'intent-done': ['', '', 'succeeded'] as const }
      for (const [intent, [, , state]] of Object.entries(expected))
        t.equal(stateOf(lines, intent), state, intent)
      const used = (intent: string) => lines.find((line) => line.limit === limitOf(intent))?.usage?.output
      t.equal(used('intent-done'), OUTPUT_TOKENS)
      t.equal(used('intent-off'), OUTPUT_TOKENS / 2)
      await checkBooks(t, service, sql, accountId, key)
    })

    await t.test('killed at random', async (t) => {
      const before = (await linesOf(sql)).length
      const troubles = [
        'outcome=fail',
        'outcome=fail, usage=always',
        'fault=accept_then_cut',
        'fault=reset:head',
      ]
      const answering = Array.from({ length: AT_RANDOM }, async (_, index) => {
        const trouble = random.int(1, 3) === 1 ? `, ${random.pick(troubles)}, times=1` : ''
        const simulate = `delay=${random.int(0, 1_500)}${trouble}`
        await sleep(random.int(0, SPREAD_MS))
        return insisted(service, key, `intent-r${index}`, simulate)
      })
      const killed = forgettingKilled(t, sql)
      for (const victim of VICTIMS) {
        await sleep(random.int(...BETWEEN_KILLS_MS))
        const ended =
          victim === 'all' ? await restart(service, random.int(0, 100)) : await killChild(service, victim)
        Object.assign(killed, ended)
      }
      await Promise.all(answering)
      const lines = (await allEnded(before + AT_RANDOM)).slice(before)
      t.comment(
        [...Map.groupBy(lines, ({ state }) => state)]
          .map(([state, all]) => `${all.length} ${state}`)
          .join(', '),
      )
      t.ok(lines.some(({ state }) => state === 'succeeded'))
      await checkBooks(t, service, sql, accountId, key)
    })
  })
