import t from 'tap'
import type { Wiring } from '../../../src/cli/wiring.ts'
import type { CallLog } from '../../../src/clickhouse/call-log.ts'
import type { CostSums, UsageByQuery, UsageSums } from '../../../src/clickhouse/summaries/usage-by.ts'
import { newAccount, startDatabase } from '../postgres/support.ts'
import { command, commandsOn, noEngines } from './support.ts'

const DAY_MS = 24 * 60 * 60 * 1000
const { database } = await startDatabase(t)
const [rich, poor] = [await newAccount(database), await newAccount(database)]
const { key } = await database.keys.create({ accountId: rich, name: '=laptop, "blue"' })

const NOTHING = { accountId: null, keyId: null, model: null, day: null, channelId: null }
const SUMS = { requests: 3, cost: 250_000_000n, inputTokens: 30, outputTokens: 20, cachedTokens: 10 }
const LESS = { requests: 1, cost: 1n, inputTokens: 3, outputTokens: 2, cachedTokens: 0 }
const ROWS: Readonly<Record<Exclude<UsageByQuery['by'], 'channel'>, UsageSums[]>> = {
  account: [
    { ...NOTHING, accountId: rich, ...SUMS },
    { ...NOTHING, accountId: poor, ...LESS },
  ],
  model: [{ ...NOTHING, model: 'sonata-large', ...SUMS }],
  day: [{ ...NOTHING, day: '2026-10-31', ...SUMS }],
  key: [
    { ...NOTHING, accountId: rich, keyId: key.id, ...SUMS },
    { ...NOTHING, accountId: poor, keyId: 'key_gone', ...LESS },
  ],
}
/** Two of the three calls of one account have a known cost. */
const COSTS: CostSums[] = [
  { ...NOTHING, accountId: rich, ...SUMS, requests: 2, cost: 200_000_000n, upstreamCost: 150_000_001n },
]
const asked: UsageByQuery[] = []
const wiring: Wiring = {
  ...noEngines,
  withCallLog: (work) =>
    work({
      database,
      callLog: {
        usageBy: async (query: UsageByQuery) => {
          asked.push(query)
          return ROWS[query.by as keyof typeof ROWS]
        },
        costsBy: async ({ by }: UsageByQuery) => {
          if (by === 'channel') return COSTS.map((row) => ({ ...row, accountId: null, channelId: 'main' }))
          return by === 'account' ? COSTS : []
        },
      } as unknown as CallLog,
    }),
}
const { json, refused, text } = commandsOn(wiring)

t.test('by account, with names and a total; a month of days is included whole', async (t) => {
  const found = await json('usage', '--from', '2026-10-01', '--to', '2026-10-31')
  const sums = { requests: 3, cost: '2.5', input_tokens: 30, output_tokens: 20, cached_tokens: 10 }
  const less = { requests: 1, cost: '0.00000001', input_tokens: 3, output_tokens: 2, cached_tokens: 0 }
  const margin = { upstream_cost: '1.50000001', margin: '0.49999999', requests_with_cost: 2 }
  const noMargin = { upstream_cost: null, margin: null, requests_with_cost: 0 }
  t.same(found, {
    object: 'usage',
    currency: 'points',
    period_from: '2026-10-01T00:00:00.000Z',
    period_to: '2026-11-01T00:00:00.000Z',
    account_id: null,
    by: 'account',
    lost_submits: { submits: 0, upstream_cost: '0' },
    rows: [
      { account_id: rich, name: 'Test', ...sums, ...margin },
      { account_id: poor, name: 'Test', ...less, ...noMargin },
    ],
    has_more: false,
    total: {
      ...{ requests: 4, cost: '2.50000001', input_tokens: 33, output_tokens: 22, cached_tokens: 10 },
      ...margin,
    },
    before: { ...sums, ...noMargin },
  })
  t.match(
    asked.at(-2),
    { accountId: null, to: Date.UTC(2026, 9, 1) },
    'the period before ends where this one begins',
  )
  const from = Date.UTC(2026, 9, 1)
  const whole = { accountId: null, by: 'account', from, to: Date.UTC(2026, 10, 1) }
  const to = Math.min(whole.to, Date.now() + DAY_MS)
  t.match(asked.at(-1), { ...whole, to: to === whole.to ? to : Number })
})

t.test('of one account by model, and by what is named', async (t) => {
  t.match(await json('usage', '--account', rich), { by: 'model', account_id: rich })
  const { from = 0, to = 0, ...query } = asked.at(-1) ?? {}
  t.same(query, { accountId: rich, by: 'model' })
  t.equal(to - from, 30 * DAY_MS + 1)
  t.match(await json('usage', '--by', 'day', '--period', 'all'), {
    rows: [{ day: '2026-10-31', cost: '2.5' }],
  })
  t.equal(asked.at(-1)?.from, 0)
  t.match(await refused('usage', '--account', 'acc_x'), /There is no account acc_x/)
})

t.test('CSV has a header, whole cells and no total; text has one', async (t) => {
  t.equal(
    await text('usage', '--by', 'key', '--format', 'csv'),
    'key_id,name,account_id,requests,cost,input_tokens,output_tokens,cached_tokens\r\n' +
      `${key.id},"'=laptop, ""blue""",${rich},3,2.5,30,20,10\r\n` +
      `key_gone,,${poor},1,0.00000001,3,2,0\r\n`,
  )
  const lines = (await text('usage', '--by', 'account', '--period', '7d')).split('\n')
  t.match(lines[0], /^\d{4}-\S+Z to \d{4}-\S+Z$/)
  t.match(lines.at(-2), /^total +- +4 +2\.50000001 +33 +22 +10 +1\.50000001 +0\.49999999 +2$/)
})

t.test('by channel, the calls with a known cost and their margin', async (t) => {
  t.equal(
    await text('usage', '--by', 'channel', '--format', 'csv'),
    'channel_id,requests,cost,input_tokens,output_tokens,cached_tokens,upstream_cost,margin,requests_with_cost\r\n' +
      'main,2,2,30,20,10,1.50000001,0.49999999,2\r\n',
  )
})

t.test('a window that is none, and what does not go together, is wrong usage', async (t) => {
  for (const words of [
    ['--from', '2026-10-01'],
    ['--from', '2026-10-02', '--to', '2026-10-01'],
    ['--from', 'soon', '--to', 'later'],
    ['--period', 'ever'],
    ['--period', '7d', '--from', '2026-10-01', '--to', '2026-10-02'],
    ['--by', 'colour'],
    ['--format', 'xml'],
  ]) {
    const { code, stderr } = await command(['usage', ...words], wiring)
    t.equal(code, 2, words.join(' '))
    t.match(stderr, /^error: /)
  }
})
