/**
 * One account with half of all calls, accounts that begin in the same moment, and one account with very many keys: calls
 * of others are answered, and all books agree. `npm run bench:uneven` measures what they cost.
 */
import t, { type Test } from 'tap'
import { Random } from '../../simulation/random.ts'
import { connectTo } from '../../support/connections.ts'
import { signIn } from '../../support/manage.ts'
import { startService } from '../../support/service.ts'
import { audit, type Caller } from '../chaos/audit.ts'
import { keepCalling, type Load, type SeenCall } from '../chaos/load.ts'
import { CHAOS_CONFIG, seedNote, seeds } from '../chaos/plan.ts'
import { say } from '../support.ts'

const SHORT = { rampMs: 5, streamMs: [5, 50] } as const
const OTHERS = 6
const BEGINNERS = 200
const MANY_KEYS = 10_000

const [seed = 0] = seeds()
t.comment(seedNote(seed))

const service = await startService(t, { config: CHAOS_CONFIG })
const random = new Random(seed)
const seen: SeenCall[] = []
const callers: Caller[] = []

async function newCaller(credit = '1000000'): Promise<Caller> {
  const caller = await service.newKey(credit)
  callers.push(caller)
  return caller
}

/** One plain call, whose answer is read to its end. */
async function call(key: string): Promise<number> {
  const sentAt = performance.now()
  const response = await service.chat(key, { model: 'cheap', max_tokens: 8, messages: say('hello') })
  await response.text()
  const requestId = response.headers.get('x-gateway-trace')
  const { status } = response
  seen.push({ requestId, status, code: null, end: 'complete', sentAt, endedAt: performance.now() })
  return status
}

const countOf = (statuses: readonly number[]) => statuses.filter((status) => status === 200).length

async function endOf(load: Load & { stop(): void }): Promise<void> {
  load.stop()
  await load.done
  seen.push(...load.seen)
}

await t.test('one account has half of all calls and more', async (t: Test) => {
  const busy = await newCaller('100000000')
  const others = []
  for (let at = 0; at < OTHERS; at++) others.push(await newCaller())
  const load = keepCalling(service, [busy.key], random, { ...SHORT, calls: 5_000, keys: 1, atOnce: 24 })
  t.teardown(() => load.stop())
  const statuses = await Promise.all(
    others.map(async ({ key }) => {
      const own: number[] = []
      for (let at = 0; at < 20; at++) own.push(await call(key))
      return own
    }),
  )
  await endOf(load)
  t.equal(countOf(statuses.flat()), OTHERS * 20, 'every call of the others is answered')
  t.ok(load.seen.length > OTHERS * 20, `the busy account had ${load.seen.length} calls meanwhile`)
})

await t.test('accounts that begin in the same moment', async (t: Test) => {
  const known = await newCaller()
  t.equal(await call(known.key), 200)
  const beginners = []
  for (let at = 0; at < BEGINNERS; at++) beginners.push(await newCaller('500'))
  const first = Promise.all(beginners.map(({ key }) => call(key)))
  const meanwhile: number[] = []
  for (let at = 0; at < 20; at++) meanwhile.push(await call(known.key))
  t.equal(countOf(await first), BEGINNERS, 'the first call of each is answered')
  t.equal(countOf(meanwhile), 20, 'and those of a known key')
})

await t.test('one account has very many keys', async (t: Test) => {
  const rich = await service.newKey('1000000')
  callers.push(rich)
  const sql = connectTo(t, service.engines.databaseUrl)
  await sql`
    INSERT INTO api_keys (id, account_id, name, kind, prefix, key_hash)
    SELECT 'key_' || lpad(n::text, 26, '0'), ${rich.accountId}, 'key ' || n, 'console', rpad('sk-' || n, 20, 'x'),
      sha256(n::text::bytea)
    FROM generate_series(1, ${MANY_KEYS}::integer) AS n`
  const other = callers[0]!
  t.same(await Promise.all([call(rich.key), call(other.key)]), [200, 200])
  const operator = await signIn(service, { role: 'operator' })
  const page = await operator.send('GET', `/keys?account_id=${rich.accountId}&limit=50`)
  t.equal(page.status, 200)
  t.equal(page.body.data.length, 50, 'its keys are listed by pages')
  t.match(await operator.send('POST', `/keys/${rich.keyId}/revoke`, {}), { status: 200 })
  t.equal(await call(other.key), 200)
  callers.splice(callers.indexOf(rich), 1)
})

await t.test('all books agree', (t: Test) => audit(t, service, callers.slice(0, 20), seen))
