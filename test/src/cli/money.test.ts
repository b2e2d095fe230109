/** Commands on money: payments, price lists, usage. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { configFile } from '../../../schemas/config/file.ts'
import { readList } from '../../../src/cli/config/catalog.ts'
import type { Wiring } from '../../../src/cli/wiring.ts'
import type { CallLog } from '../../../src/clickhouse/call-log.ts'
import type { CostSums, UsageByQuery, UsageSums } from '../../../src/clickhouse/summaries/usage-by.ts'
import { readPriceList } from '../../../src/core/pricing/price-list.ts'
import { openProvider } from '../../../src/payments/provider.ts'
import { payAt } from '../../end-to-end/payments/support.ts'
import { simulatorFor } from '../../simulator/support.ts'
import { serveHttp } from '../../support/http-server.ts'
import { newPayment, paymentNotice, providerEvent } from '../postgres/payments/support.ts'
import { newAccount, openFresh, sharePostgres } from '../postgres/support.ts'
import { command, commandsOn, noEngines, wiringOn } from './support.ts'

const engines = await sharePostgres()

t.test('payments are listed refunded and reconciled', async (t) => {
  // `tollgate payments …`, by the acts of the management API, on PostgreSQL and the simulated payment provider.
  const { database } = await openFresh(t, engines)
  const simulator = await simulatorFor(t)
  const provider = await openProvider({
    secretKey: 'sk_test_cli',
    webhookSecrets: ['whsec_cli'],
    apiUrl: simulator.url,
  })
  const config = { payments: { currency: 'usd', credits_per_unit: '100', seller: ['Test'] } }
  const wiring = wiringOn(database, config, {
    openProvider: async () => async () => provider,
    ask: async () => null,
  })
  const { json, text, refused } = commandsOn(wiring)

  /** A customer pays 5.00 usd, and no webhook reports it. */
  async function payUnreported() {
    const accountId = await newAccount(database, 0n)
    const customerId = await provider.createCustomer(accountId, 'Test')
    await database.payments.keepCustomer(accountId, customerId)
    const payment = await newPayment(database, accountId)
    const pages = { successUrl: 'https://gateway.example/', cancelUrl: 'https://gateway.example/' }
    const opened = await provider.openCheckout(payment, customerId, { ...pages, savesMethod: false })
    await database.payments.takeNotice(opened)
    await payAt(opened.url!)
    return { accountId, id: payment.id }
  }

  t.test('what no webhook reported is reconciled, listed, shown and refunded', async (t) => {
    const [first, second] = [await payUnreported(), await payUnreported()]
    t.match(await json('payments', 'show', first.id), { state: 'open', receipts: { length: 0 } })
    t.match(await json('payments', 'reconcile', '--days', '1'), { found: 2, refused: 0 })
    t.equal((await json('payments', 'reconcile', '--days', '1')).found, 0)
    const ids = async (...words: string[]) =>
      (await json('payments', 'list', ...words)).map(({ id }: { id: string }) => id)
    t.same(await ids(), [second.id, first.id])
    t.same(await ids('--account', first.accountId), [first.id])
    t.same(await ids('--limit', '1'), [second.id])
    t.same(await ids('--since', '2000-01-01', '--until', '2999-01-01'), [second.id, first.id])
    t.same(await ids('--since', '2999-01-01'), [])
    t.same(await ids('--until', '2000-01-01'), [])
    t.match(await text('payments', 'show', first.id), /\nreceipts\n.*kind.*\n.* receipt /)
    const unconfirmed = ['payments', 'refund', first.id, '--reason', 'bought by mistake']
    for (const [words, effect] of [
      [unconfirmed, 'pay 5.00 USD back to the card, for good, and take 500 credits'],
      [[...unconfirmed, '--amount', '2.00'], 'pay 2.00 USD back to the card, for good, and take 200 credits'],
    ] as const)
      t.match(
        await refused(...words),
        `This would ${effect} from ${first.accountId}. Add --yes to confirm. Nothing was changed.`,
      )
    t.match(await json('payments', 'show', first.id), { refunded: '0.00' })
    const refund = [...unconfirmed, '--yes']
    t.match(await json(...refund, '--amount', '2.00'), { refunded: '2.00', credits_taken: '200' })
    t.match(await json(...refund), { refunded: '5.00', credits_taken: '500' })
    t.equal((await database.accounts.show(first.accountId)).wallet.balance, 0n)
    t.match(await refused('payments', 'show', 'pay_x'), /There is no payment pay_x/)
    t.equal((await command(['payments', 'refund', second.id], wiring)).code, 2, 'a reason is required')
    t.equal((await command(['payments', 'reconcile', '--days', '31'], wiring)).code, 2, '30 days at most')
  })

  t.test('a refused event is a difference until it is closed, with a reason, once', async (t) => {
    const payment = await newPayment(database, await newAccount(database, 0n))
    const event = providerEvent(paymentNotice(payment, { amount: 499n }))
    t.match(await database.payments.takeProviderEvent(event), { outcome: 'refused' })
    const refusedEvents = async () =>
      (await database.audits.verifyWallets()).differences.filter(({ kind }) => kind === 'payment_event')
    t.match(await refusedEvents(), [{ ref: event.id, account_id: payment.accountId }])
    t.match(await json('payments', 'refused'), [
      { id: event.id, payment_id: payment.id, refusal: /4\.99 usd was paid/, closed_at: null },
    ])
    const close = ['payments', 'close', event.id, '--reason', 'refunded by hand']
    t.match(await json(...close), { closed_by: 'operator:test', close_reason: 'refunded by hand' })
    t.same(await refusedEvents(), [])
    t.same(await json('payments', 'refused'), [])
    t.match(await json('payments', 'refused', '--all'), [{ id: event.id, close_reason: 'refunded by hand' }])
    t.match(await refused(...close), /operator:test has closed .* already/)
    t.match(await refused('payments', 'close', 'evt_x', '--reason', 'none'), /no refused payment event evt_x/)
    t.equal((await command(['payments', 'close', event.id], wiring)).code, 2, 'a reason is required')
    t.match(
      await database.payments.takeProviderEvent(event),
      { outcome: 'seen' },
      'it stays closed when it comes again',
    )
    const [act] = await database.auditRecord.list({ subjectId: event.id, limit: 1 })
    t.match(act, {
      action: 'payment_event.close',
      actor: 'operator:test',
      accountId: payment.accountId,
      before: { payment_id: payment.id },
      after: { reason: 'refunded by hand' },
    })
  })

  t.test('without a provider nothing is refunded, and the list is there', async (t) => {
    const { json, refused } = commandsOn({ ...wiring, openProvider: async () => null })
    t.equal((await json('payments', 'list')).length, 3)
    t.match(await refused('payments', 'reconcile'), /takes no cards/)
  })
})

t.test('prices are compared with a public list', async (t) => {
  const LITELLM = {
    sample_spec: { max_tokens: 'a text' },
    'deepseek/deepseek-chat': {
      input_cost_per_token: 2.8e-7,
      output_cost_per_token: 4.2e-7,
      cache_read_input_token_cost: 2.8e-8,
      litellm_provider: 'deepseek',
    },
    'claude-x': {
      input_cost_per_token: 3e-6,
      output_cost_per_token: 0.000015,
      cache_creation_input_token_cost: 3.75e-6,
    },
  }
  const MODELS_DEV = {
    deepseek: {
      id: 'deepseek',
      models: {
        'deepseek-chat': { id: 'deepseek-chat', cost: { input: 0.28, output: 0.42, cache_read: 0.028 } },
      },
    },
    reseller: { id: 'reseller', models: { 'claude-x': { cost: { input: 4, output: 16 } } } },
    anthropic: {
      id: 'anthropic',
      models: { 'claude-x': { cost: { input: 3, output: 15, cache_write: 3.75 } } },
    },
  }

  const config = configFile.parse({
    models: [
      { id: 'deep', pricing: { unit: '1M_tokens', input: '0.28', output: '0.5' } },
      { id: 'claude', pricing: { unit: '1M_tokens', input: '3', output: '15' } },
      { id: 'own', pricing: { unit: '1M_tokens', input: '1', output: '1' } },
      { id: 'film', endpoint_type: 'videos_generations', pricing: { unit: 'second', per_unit: '1' } },
    ],
    channels: [
      {
        id: 'd',
        provider: 'deepseek',
        protocol: 'chat-completions',
        base_url: 'https://d.test/v1',
        models: { deep: 'deepseek-chat', own: 'own-model' },
        cost: { deep: { unit: '1M_tokens', input: '0.28', output: '0.42', cached_input: '0.028' } },
      },
      {
        id: 'c',
        provider: 'anthropic',
        protocol: 'messages',
        base_url: 'https://c.test',
        models: { claude: 'claude-x' },
      },
    ],
  })

  const { json, refused, text } = commandsOn({
    ...noEngines,
    loadConfig: () => ({ file: 'tollgate.yaml', config, problems: [], warnings: [] }),
  })
  const file = join(t.testdir(), 'prices.json')
  const write = (list: object) => writeFileSync(file, JSON.stringify(list))

  t.test('both formats propose the same changes, exact to the last digit', async (t) => {
    for (const list of [LITELLM, MODELS_DEV]) {
      write(list)
      t.same(await json('catalog', 'diff', file), {
        changes: [
          {
            model: 'deep',
            channel: null,
            listed_as: 'deepseek/deepseek-chat',
            price: 'output',
            now: '0.5',
            listed: '0.42',
          },
          {
            model: 'deep',
            channel: null,
            listed_as: 'deepseek/deepseek-chat',
            price: 'cached_input',
            now: null,
            listed: '0.028',
          },
        ],
        unlisted: ['own'],
      })
    }
  })

  t.test('a list is read from a file, and from a URL at a public address', async (t) => {
    const base = await serveHttp(t, (request, response) => {
      response.statusCode = request.url === '/prices.json' ? 200 : 404
      response.end(JSON.stringify(LITELLM))
    })
    write(LITELLM)
    const everywhere = { isAllowed: () => true }
    t.same(JSON.parse(await readList(file)), LITELLM)
    t.same(JSON.parse(await readList(`${base}/prices.json`, everywhere)), LITELLM)
    await t.rejects(readList(`${base}/gone.json`, everywhere), {
      message: /cannot be fetched: its server answered with status 404/,
    })
    t.match(
      await refused('catalog', 'diff', 'gone.json'),
      /The price list gone.json cannot be read: there is no such file\./,
    )
    t.match(await refused('catalog', 'diff', `${base}/prices.json`), /cannot be reached at a public address/)
  })

  t.test('the changes are YAML', async (t) => {
    write(LITELLM)
    t.equal(
      await text('catalog', 'diff', file, '--per-usd', '2'),
      [
        'models:',
        '  - id: "deep" # listed as deepseek/deepseek-chat',
        '    pricing:',
        '      input: "0.56" # now "0.28"',
        '      output: "0.84" # now "0.5"',
        '      cached_input: "0.056" # now not set',
        '  - id: "claude" # listed as claude-x',
        '    pricing:',
        '      input: "6" # now "3"',
        '      output: "30" # now "15"',
        '# not in the list: own',
        '',
      ].join('\n'),
    )
  })

  t.test('costs of channels are compared on request', async (t) => {
    write(LITELLM)
    const { changes } = (await json('catalog', 'diff', file, '--cost')) as { changes: object[] }
    t.match(changes, [
      { model: 'claude', channel: 'c', price: 'input', now: null, listed: '3' },
      { model: 'claude', channel: 'c', price: 'output', now: null, listed: '15' },
    ])
    t.equal(changes.length, 2)
  })

  t.test('a list that is none is refused', async (t) => {
    write({ a: { b: 1 } })
    t.match(await refused('catalog', 'diff', file), /no price list in the format of LiteLLM or models.dev/)
    t.throws(() => readPriceList('<html>'), /not JSON/)
  })

  t.test('names that providers price differently are not guessed', async (t) => {
    const list = readPriceList(JSON.stringify(MODELS_DEV))
    t.equal(list.get('claude-x'), null)
    t.not(list.get('anthropic/claude-x'), null)
  })
})

t.test('usage by customer and period', async (t) => {
  const DAY_MS = 24 * 60 * 60 * 1000
  const { database } = await openFresh(t, engines)
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
    books: async () => ({
      database,
      callLog: {
        sumUsageByGroup: async (query) => {
          asked.push(query)
          return ROWS[query.by]
        },
        sumCostsByGroup: async ({ by }) => {
          if (by === 'channel') return COSTS.map((row) => ({ ...row, accountId: null, channelId: 'main' }))
          return by === 'account' ? COSTS : []
        },
      } as Partial<CallLog> as CallLog,
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
    t.same(query, { accountId: rich, by: 'model', timezone: 'UTC' })
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
})
