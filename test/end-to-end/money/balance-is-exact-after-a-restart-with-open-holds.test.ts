/** The balance is exact after a restart with open holds. See docs/failure-modes.md, "Money", row 25. */
import t from 'tap'
import { parseCredits, printCredits } from '../../../schemas/money.ts'
import type { Task } from '../../../src/postgres/tasks/types.ts'
import { giveBack, hold, settle } from '../../src/postgres/tasks/support.ts'
import { eventually, startService, type TestService } from '../../support/service.ts'
import {
  type BalanceJson,
  balanceOf,
  callConfig,
  readUntil,
  say,
  traceOf,
  upstreamCalls,
} from '../support.ts'

const CREDIT = '10000'
const MESSAGES = say('hello')
const PROMPT_TOKENS = Math.ceil(JSON.stringify(MESSAGES).length / 4)
const OUTPUT_TOKENS = 5
const COST = PROMPT_TOKENS + 2 * OUTPUT_TOKENS
const CALLS = 20
const HOLDS = ['0.5', '100.25', '7.00000001']
const HELD = '107.75000001'

const minus = (credits: string, ...amounts: string[]): string =>
  printCredits(amounts.reduce((left, amount) => left - parseCredits(amount), parseCredits(credits)))

/** Whatever is still being booked when it begins, this is how it ends. */
const becomes = (service: TestService, key: string, expected: BalanceJson): Promise<BalanceJson> =>
  eventually(`the balance is ${JSON.stringify(expected)}`, async () => {
    const balance = await balanceOf(service, key)
    const isExact = Object.entries(expected).every(
      ([name, value]) => balance[name as keyof BalanceJson] === value,
    )
    return isExact ? balance : undefined
  })

t.test('a service killed with holds open, calls open and settlements not booked', async (t) => {
  const models = { quick: {}, endless: { simulate: 'fault=hang:2000' } }
  const service = await startService(t, { config: callConfig(models) })
  const { key, accountId } = await service.newKey(CREDIT)
  const held: Task[] = []
  for (const amount of HOLDS) held.push(await hold(service.database, accountId, parseCredits(amount)))
  t.match(await balanceOf(service, key), { remaining: minus(CREDIT, HELD), held: HELD, used: '0' })

  const client = new AbortController()
  const body = { model: 'endless', messages: MESSAGES, stream: true, max_tokens: 500 }
  const open = await service.chat(key, body, { signal: client.signal })
  const cut = readUntil(open)
  const answers = Array.from({ length: CALLS }, () =>
    service.chat(key, { model: 'quick', messages: MESSAGES, max_tokens: OUTPUT_TOKENS }),
  )
  for (const answer of answers) t.equal((await answer).status, 200)
  await service.kill()
  await cut

  await service.start()
  const used = String(CALLS * COST)
  const exact = { remaining: minus(CREDIT, used, HELD), used, held: HELD, total: CREDIT }
  t.match(await balanceOf(service, key), exact, 'from the first look on')

  const rows = await service.logs(key, (found) => found.length === CALLS + 1)
  t.match(
    rows.find(({ request_id }) => request_id === traceOf(open)),
    { status: 'interrupted', cost: '0', output_tokens: 0 },
    'the call that was open is interrupted, at no charge',
  )
  t.ok((await upstreamCalls(service, traceOf(open))).every(({ state }) => state !== 'running'))

  const [refused, failed, done] = held
  await giveBack(service.database, refused!, 'refused')
  await giveBack(service.database, failed!, 'failed')
  await settle(service.database, done!, parseCredits('3.00000001'))
  const settled = printCredits(parseCredits(used) + parseCredits('3.00000001'))
  const closed = { remaining: minus(CREDIT, settled), used: settled, held: '0', total: CREDIT }
  t.match(await becomes(service, key, closed), closed)
  t.ok((await service.database.audits.verifyWallets()).ok)
})
