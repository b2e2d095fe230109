/** Parallel calls overdraw the wallet within a bound. See docs/failure-modes.md, "Money", row 1. */
import { writeFile } from 'node:fs/promises'
import t from 'tap'
import { borrowService } from '../../support/lend-services.ts'
import { eventually, type LentService, type LogJson } from '../../support/service.ts'
import { balanceOf, callConfig, errorOf, reconfigure, say } from '../support.ts'

const PARALLEL_CALLS = 200
const AFFORDABLE_CALLS = 10
const MESSAGES = say('hi')
const OUTPUT_TOKENS = 5
const COST = Math.ceil(JSON.stringify(MESSAGES).length / 4) + 2 * OUTPUT_TOKENS
const BODY = { model: 'slow', messages: MESSAGES, max_tokens: OUTPUT_TOKENS }

interface Outcome {
  readonly key: string
  readonly admitted: number
  readonly refused: number
  readonly rows: LogJson[]
}

/** All at once on a wallet for ten of them; ends when every call has its row. */
async function rush(service: LentService): Promise<Outcome> {
  const { key } = await service.newKey(String(COST * AFFORDABLE_CALLS))
  await balanceOf(service, key)
  const statuses = await Promise.all(
    Array.from({ length: PARALLEL_CALLS }, async () => {
      const response = await service.chat(key, BODY)
      await response.text()
      return response.status
    }),
  )
  const rows = await service.logs(key, (found) => found.length === PARALLEL_CALLS)
  const count = (status: number) => statuses.filter((s) => s === status).length
  return { key, admitted: count(200), refused: count(402), rows }
}

/** Everything is booked: the wallet says so, and it is empty or below. */
const bookedBalance = (service: LentService, { key, admitted }: Outcome) =>
  eventually('all charges are booked', async () => {
    const { remaining, used } = await balanceOf(service, key)
    return used === String(COST * admitted) ? Number(remaining) : undefined
  })

const isRefused = async (service: LentService, key: string): Promise<boolean> => {
  const response = await service.chat(key, BODY)
  return response.status === 402 && (await errorOf(response)).code === 'quota_exceeded'
}

t.test('parallel calls on a balance for ten', async (t) => {
  const models = { slow: { simulate: 'ttft=20' } }
  const service = await borrowService(t, callConfig(models))

  await t.test('with estimates reserved, exactly ten are admitted and nothing is overdrawn', async (t) => {
    const outcome = await rush(service)
    t.equal(outcome.admitted, AFFORDABLE_CALLS)
    t.equal(outcome.refused, PARALLEL_CALLS - AFFORDABLE_CALLS)
    t.equal(await bookedBalance(service, outcome), 0)
    t.ok(await isRefused(service, outcome.key), 'and every later call is 402')
  })

  await t.test('without reservations, the overdraft is what was admitted before it was empty', async (t) => {
    const config = callConfig({ ...models, second: {} }, 'wallet: { reserve_in_flight: false }')
    const { key: reader } = await service.newKey('1')
    await reconfigure(
      service,
      reader,
      () => writeFile(service.configPath, config),
      (ids) => ids.includes('second'),
    )
    const outcome = await rush(service)
    t.ok(outcome.admitted >= AFFORDABLE_CALLS)
    t.equal(outcome.admitted + outcome.refused, PARALLEL_CALLS)
    t.equal(await bookedBalance(service, outcome), COST * (AFFORDABLE_CALLS - outcome.admitted))

    const admitted = outcome.rows.filter(({ status }) => status === 'success')
    const ends = admitted.map(({ created_at }) => Date.parse(String(created_at))).sort((a, b) => a - b)
    const emptyAt = ends[AFFORDABLE_CALLS - 1]!
    const late = admitted.filter(({ submitted_at }) => Date.parse(String(submitted_at)) > emptyAt)
    t.same(late, [], 'no call that came after the tenth had ended was admitted')
    t.ok(await isRefused(service, outcome.key), 'and every later call is 402')
  })
})
