/** Commands on accounts, wallets and keys, each run in this process on a real PostgreSQL. */
import t from 'tap'
import { KEY_PATTERN } from '../../../schemas/accounts/key.ts'
import type { MonthSum } from '../../../schemas/call-log/audit.ts'
import { Failure } from '../../../schemas/failure.ts'
import { parseCredits } from '../../../schemas/money.ts'
import type { Wiring } from '../../../src/cli/wiring.ts'
import type { CallLog } from '../../../src/clickhouse/call-log.ts'
import { openFresh, sharePostgres } from '../postgres/support.ts'
import { command, commandsOn, wiringOn } from './support.ts'

const engines = await sharePostgres()

t.test('answers in json', async (t) => {
  const { database, sql } = await openFresh(t, engines)
  const logged: MonthSum[] = []
  const callLog: Partial<CallLog> = {
    readRetainedFrom: async () => 0,
    sumMonths: async () => logged,
    bucketSums: async () => logged.map((sum) => ({ ...sum, bucket: 0n })),
    listCallsBetween: async () => [{ id: 7n, requestId: 'req_a', cost: 250_000_000n }],
    compareDays: async () => [],
  }
  const pricing = { unit: '1M_tokens', input: '1', output: '1' }
  const config = {
    trial_credit: '200',
    models: [
      { id: 'sonata-large', aliases: ['sonata'], pricing },
      { id: 'sonata-small', pricing },
    ],
  }
  const wiring = wiringOn(database, config, {
    books: async () => ({ database, callLog: callLog as CallLog }),
    ask: async () => null,
  })
  const { json, refused, text } = commandsOn(wiring)

  const MONEY = /^-?\d+(\.\d*[1-9])?$/
  const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

  const wallet = (account_id: string, remaining: string) => ({
    account_id,
    currency: 'points',
    balance: remaining,
    remaining,
    held: '0',
    used: '0',
    total: remaining,
  })

  let accountId = ''

  t.test('account', async (t) => {
    const created = await json('account', 'create', '--name', 'Acme', '--kind', 'organization')
    accountId = created.id
    t.match(accountId, /^acc_[0-9A-Z]{26}$/)
    t.match(created.created_at, TIME)
    const expected = {
      id: accountId,
      name: 'Acme',
      kind: 'organization',
      enabled: true,
      requests_per_minute: null,
      concurrency: null,
      allowed_models: null,
      created_at: created.created_at,
      wallet: wallet(accountId, '200'),
    }
    t.same(created, expected)
    t.same(await json('account', 'show', accountId), expected)
    const poor = await json('account', 'create', '--name', 'Poor', '--credit', '0')
    t.equal(poor.wallet.remaining, '0')
    const ids = (await json('account', 'list')).map(({ id }: { id: string }) => id)
    t.same(ids.sort(), [accountId, poor.id].sort())
    t.match(await json('account', 'limits', accountId, '--rpm', '60'), {
      requests_per_minute: 60,
      concurrency: null,
    })
    t.match(await json('account', 'limits', accountId, '--rpm', 'none', '--concurrency', '3'), {
      requests_per_minute: null,
      concurrency: 3,
    })
    t.same((await json('account', 'models', accountId, '--models', 'sonata,sonata-small')).allowed_models, [
      'sonata',
      'sonata-small',
    ])
    t.same((await json('account', 'models', accountId, '--models', 'none')).allowed_models, [])
    t.equal((await json('account', 'models', accountId, '--models', 'all')).allowed_models, null)
    t.match(await json('account', 'disable', accountId, '--yes'), { enabled: false })
    t.match(await json('account', 'enable', accountId), { enabled: true })
    t.match(await refused('account', 'show', 'acc_x'), 'error: There is no account acc_x.\n')
  })

  t.test('wallet', async (t) => {
    t.match(await refused('wallet', 'topup', accountId, '404.3'), /at least 404\.4 credits, not 404\.3/)
    const topped = await json('wallet', 'topup', accountId, '404.40', '--note', 'by card')
    t.match(topped, wallet(accountId, '604.4'))
    t.match(topped.entry, { kind: 'topup', amount: '404.4', note: 'by card' })
    t.same(await json('wallet', 'show', accountId), wallet(accountId, '604.4'))
    t.match(await text('wallet', 'show', accountId), /^currency +credits$/m, 'the words of people')
    const ledger = await json('wallet', 'ledger', accountId)
    t.same(ledger[0], topped.entry)
    t.match(ledger[1], { account_id: accountId, kind: 'trial', amount: '200', ref: null, note: null })
    for (const { id, amount, created_at } of ledger) {
      t.ok(Number.isSafeInteger(id))
      t.match(amount, MONEY)
      t.match(created_at, TIME)
    }
    t.equal((await json('wallet', 'ledger', accountId, '--limit', '1')).length, 1)
  })

  t.test('key', async (t) => {
    const created = await json(
      ...[
        'key',
        'create',
        '--account',
        accountId,
        '--name',
        'laptop',
        '--models',
        'sonata-large,sonata-small',
      ],
      ...['--expires', '2031-01-02T03:04:05+01:00', '--kind', 'employee', '--spend-cap', '50.5'],
    )
    t.match(created.key, KEY_PATTERN)
    const { key, ...shown } = created
    t.same(shown, {
      id: created.id,
      account_id: accountId,
      name: 'laptop',
      kind: 'employee',
      key_prefix: key.slice(0, 20),
      allowed_models: ['sonata-large', 'sonata-small'],
      expires_at: '2031-01-02T02:04:05.000Z',
      requests_per_minute: null,
      concurrency: null,
      allowed_addresses: null,
      max_price: null,
      enabled: true,
      revoked_at: null,
      agent_id: null,
      member_id: null,
      spend_cap: '50.5',
      spent: '0',
      account_logs: false,
      opens_draft: false,
      revealable: true,
      former_secret: null,
      created_at: created.created_at,
    })
    t.same(await json('key', 'show', created.id), shown)
    t.same(await json('key', 'list', '--account', accountId), [shown])
    t.same(await json('key', 'reveal', created.id), created)
    const changes = [
      '--models',
      'all',
      '--expires',
      'never',
      '--disable',
      '--yes',
      '--account-logs',
      'off',
      '--name',
      'desk',
      '--spend-cap',
      '7',
    ]
    t.match(await json('key', 'update', created.id, ...changes), {
      allowed_models: null,
      expires_at: null,
      enabled: false,
      account_logs: false,
      name: 'desk',
      spend_cap: '7',
    })
    t.match(await json('key', 'update', created.id, '--models', 'none', '--enable'), {
      allowed_models: { length: 0 },
      enabled: true,
    })
    t.equal((await json('key', 'update', created.id, '--spend-cap', 'none')).spend_cap, null)
    t.match(await refused('key', 'update', created.id, '--account-logs', 'on'), /only console keys may/)
    t.match((await json('key', 'revoke', created.id, '--yes')).revoked_at, TIME)
    t.match(await refused('key', 'update', created.id, '--enable'), /has been revoked/)
    const bound = ['--kind', 'agent', '--agent', 'agt_x']
    t.match(
      await refused('key', 'create', '--account', accountId, '--name', 'bot', ...bound),
      /There is no agent agt_x/,
    )
    t.match(await refused('key', 'reveal', 'key_x'), /There is no key key_x/)
  })

  t.test('key rotate', async (t) => {
    const limits = ['--rpm', '60', '--concurrency', '4', '--addresses', '10.0.0.0/8,::ffff:192.0.2.1']
    const created = await json('key', 'create', '--account', accountId, '--name', 'server', ...limits)
    t.match(created, {
      requests_per_minute: 60,
      concurrency: 4,
      allowed_addresses: ['10.0.0.0/8', '192.0.2.1'],
      former_secret: null,
    })
    t.match(await text('key', 'show', created.id), /allowed_addresses +10\.0\.0\.0\/8/)
    t.match(
      await refused('key', 'update', created.id, '--addresses', '10.1.2.3/8'),
      /write 10\.0\.0\.0\/8 for the whole network/,
    )
    const lifted = ['--rpm', 'none', '--concurrency', 'none', '--addresses', 'any']
    t.match(await json('key', 'update', created.id, ...lifted), {
      requests_per_minute: null,
      concurrency: null,
      allowed_addresses: null,
      max_price: null,
    })
    const rotated = await json('key', 'rotate', created.id, '--grace', '90m')
    t.match(rotated, { id: created.id, key: KEY_PATTERN, former_secret: { grace_seconds: 5400 } })
    t.equal((await json('key', 'reveal', created.id)).key, rotated.key)
    t.match(
      await text('key', 'show', created.id),
      /works until .* at most: the new secret has not been used yet/,
    )
    t.match((await json('key', 'rotate', created.id)).former_secret, { grace_seconds: 86_400 })
    const { former_secret } = await json('key', 'end-former', created.id, '--yes')
    t.ok(Date.parse(former_secret.ends_at) <= Date.now() + 1000)
    t.match(await text('key', 'show', created.id), /ended at/)
  })

  t.test('key forget', async (t) => {
    const created = await json('key', 'create', '--account', accountId, '--name', 'one')
    t.match(
      await refused('key', 'forget', '--all'),
      /none could be revealed again\. Add --yes to confirm\. Nothing was changed/,
    )
    t.equal((await json('key', 'reveal', created.id)).key, created.key)
    t.ok((await json('key', 'forget', '--all', '--yes')).forgotten > 0)
    t.match(await refused('key', 'reveal', created.id), /is kept only as a hash/)
    t.equal((await json('key', 'show', created.id)).revealable, false)
  })

  t.test('wallet verify', async (t) => {
    const report = await json('wallet', 'verify')
    t.same(report, { ok: true, accounts: 2, entries: 2, differences: [] })
    t.match(
      await text('wallet', 'verify'),
      /^ok +true\naccounts +2\nentries +2\nsince +20\S+Z\ndifferences +\(none\)\n$/,
    )
    t.match(
      await text('wallet', 'verify', '--full'),
      /^ok +true\naccounts +2\nentries +2\ndifferences +\(none\)\n$/,
    )
    const away: Wiring = {
      ...wiring,
      books: async () => ({
        database,
        callLog: {
          ...callLog,
          sumMonths: async () => {
            throw new Failure('service_unavailable', 'Away.', { internal: 'ClickHouse: refused' })
          },
        } as Partial<CallLog> as CallLog,
      }),
    }
    t.match(await command(['wallet', 'verify', '--json'], away), {
      code: 0,
      stdout: /"differences": \[\],\n {2}"call_log_not_compared": "ClickHouse: refused"/,
      stderr: 'The call log was not compared, because it cannot be read: ClickHouse: refused\n',
    })
    await sql`UPDATE wallets SET balance = balance + 1 WHERE account_id = ${accountId}`
    logged.push({ accountId, month: '202601', rows: 1n, ids: 7n, cost: parseCredits('2.5') })
    const { code, stdout, stderr } = await command(['wallet', 'verify', '--json'], wiring)
    t.same({ code, stderr }, { code: 1, stderr: '' })
    t.same(JSON.parse(stdout), {
      ok: false,
      accounts: 2,
      entries: 2,
      differences: [
        { account_id: accountId, kind: 'balance', expected: '604.4', found: '604.40000001' },
        { account_id: accountId, kind: 'log_rows', expected: '0', found: '1' },
        { account_id: accountId, kind: 'log_cost', expected: '0', found: '2.5' },
        { account_id: accountId, kind: 'log_unknown', ref: 'req_a', expected: '0', found: '1' },
      ],
    })
    t.equal((await command(['wallet', 'verify'], wiring)).code, 1)
    const group = { account_id: accountId, model: 'fast', channel_id: 'primary' }
    const odd: Wiring = {
      ...wiring,
      books: async () => ({
        callLog: callLog as CallLog,
        database: {
          ...database,
          audits: {
            ...database.audits,
            reportMetering: async () => ({
              groups: [{ ...group, calls: 8, estimated: 6, suspect: 1, otherModel: 0 }],
              negative: [{ account_id: accountId, balance: parseCredits('-2.5') }],
            }),
          },
        },
      }),
    }
    t.match(JSON.parse((await command(['wallet', 'verify', '--json'], odd)).stdout), {
      metered_last_day: [
        { ...group, calls: 8, estimated: 6, estimated_percent: 75, suspect: 1, other_model: 0 },
      ],
      negative_balances: [{ account_id: accountId, balance: '-2.5' }],
    })
    t.match(
      (await command(['wallet', 'verify'], odd)).stdout,
      /metered_last_day\n[\s\S]* 75 [\s\S]*negative_balances\n[\s\S]*-2\.5/,
    )
  })

  t.test('text stands in columns, and shows of a key what may be shown', async (t) => {
    const lines = (await text('wallet', 'ledger', accountId)).trimEnd().split('\n')
    const column = lines[0]!.indexOf('amount')
    t.same(
      lines.slice(1).map((line) => line.slice(column).split(' ')[0]),
      ['404.4', '200'],
    )
    const keys = await text('key', 'list', '--account', accountId)
    t.match(keys, /sk-tollgate-[0-9a-f]{8} /)
    t.notMatch(keys, /sk-tollgate-[0-9a-f]{9}/)
  })

  t.test('a name cannot steer the terminal', async (t) => {
    const evil = 'bell \u0007 red \u001b[31m turned \u202e'
    const { id, name } = await json('account', 'create', '--name', evil)
    t.equal(name, evil)
    t.match(await text('account', 'show', id), 'name                 bell ? red ?[31m turned ?\n')
  })
})
