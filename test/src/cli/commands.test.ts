/** What commands answer and change, each run in this process on a real PostgreSQL. */
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { tmpdir, userInfo } from 'node:os'
import { dirname, join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import t from 'tap'
import { commandCaller } from '../../../pipelines/management/caller.ts'
import { deliveryOperations } from '../../../pipelines/management/notifications/deliveries.ts'
import { findImplementation, runImplementation } from '../../../pipelines/management/operation.ts'
import { printCursor } from '../../../pipelines/management/page.ts'
import { sessionOperations } from '../../../pipelines/management/people/sessions.ts'
import { signInOperations } from '../../../pipelines/management/people/sign-in.ts'
import { KEY_PATTERN } from '../../../schemas/accounts/key.ts'
import type { MonthSum } from '../../../schemas/call-log/audit.ts'
import { configFile } from '../../../schemas/config/file.ts'
import type { Settings } from '../../../schemas/config/settings.ts'
import { Failure } from '../../../schemas/failure.ts'
import { listDeliveries } from '../../../schemas/management/notifications/deliveries.ts'
import { showSession, signInByLink } from '../../../schemas/management/people/sessions.ts'
import {
  acceptInvitation,
  lookUpInvitation,
  signInByPassword,
  signUp,
} from '../../../schemas/management/people/sign-in.ts'
import { ONE_CREDIT, parseCredits } from '../../../schemas/money.ts'
import { readList } from '../../../src/cli/config/catalog.ts'
import type { Wiring } from '../../../src/cli/wiring.ts'
import type { CallLog } from '../../../src/clickhouse/call-log.ts'
import type { CostSums, UsageByQuery, UsageSums } from '../../../src/clickhouse/summaries/usage-by.ts'
import { hashToken } from '../../../src/core/keys/bearer-token.ts'
import { newId } from '../../../src/core/keys/ids.ts'
import { fileLinks, linkKey } from '../../../src/core/media/file-link.ts'
import { readPriceList } from '../../../src/core/pricing/price-list.ts'
import { type Journal, openJournal } from '../../../src/journal/journal.ts'
import { openProvider } from '../../../src/payments/provider.ts'
import { recordOperation } from '../../../src/postgres/accounts/audit-record.ts'
import { openDatabase } from '../../../src/postgres/database.ts'
import { FolderStore } from '../../../src/storage/folder-store.ts'
import { payAt } from '../../end-to-end/payments/support.ts'
import { BrowserSession, CONFIG } from '../../pipelines/management/browser-session.ts'
import { simulatorFor } from '../../simulator/support.ts'
import { until } from '../../support/eventually.ts'
import { serveHttp } from '../../support/http-server.ts'
import { newPayment, paymentNotice, providerEvent } from '../postgres/payments/support.ts'
import { newAccount, openFresh, settlement, sharePostgres } from '../postgres/support.ts'
import { hold, newVideo, settle } from '../postgres/tasks/support.ts'
import { type Entry, ids, listAuditedCommands, words } from './audited-operations.ts'
import { command, commandsOn, noEngines, tollgate, wiringOn } from './support.ts'

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

t.test('large amounts and unknown names are refused', async (t) => {
  const { database } = await openFresh(t, engines)
  const pricing = { unit: '1M_tokens', input: '1', output: '1' }
  const config = {
    trial_credit: '50',
    wallet: { confirm_above: '1000' },
    webhooks: { private_addresses: true },
    models: [
      { id: 'sonata-large', aliases: ['sonata'], pricing },
      { id: 'sonata-small', pricing },
    ],
  }
  const wiring = wiringOn(database, config, { ask: async () => null })
  const { json, refused, text } = commandsOn(wiring)
  const account = (await json('account', 'create', '--name', 'Acme')).id as string
  const balance = async () => (await json('wallet', 'show', account)).balance

  /** On a terminal whose user answers so. */
  function answering(answer: string) {
    const asked: string[] = []
    const ask = async (question: string) => {
      asked.push(question)
      return answer
    }
    return { asked, wiring: { ...wiring, ask } }
  }

  t.test('a large change asks on a terminal, and needs --yes without one', async (t) => {
    t.equal(
      (await json('wallet', 'topup', account, '1000')).balance,
      '1050',
      'the limit itself is not over it',
    )
    for (const words of [
      ['wallet', 'topup', account, '9999999999'],
      ['wallet', 'topup', account, '1000.00000001'],
      ['wallet', 'adjust', account, '1001', '--reason', 'x'],
      ['wallet', 'adjust', account, '-1001', '--reason', 'x'],
    ]) {
      const told = await refused(...words)
      t.match(
        told,
        /more than wallet\.confirm_above \(1000\)\. Add --yes to confirm\. Nothing was changed/,
        words.join(' '),
      )
    }
    for (const answer of ['y', 'yes', '', '1000']) {
      const no = answering(answer)
      const { code, stderr } = await command(['wallet', 'topup', account, '2000'], no.wiring)
      t.same({ code, stderr }, { code: 1, stderr: 'error: Nothing was changed.\n' })
      t.match(no.asked, [
        new RegExp(`^This would add 2000 credits to ${account}, .*\\. Type 2000 to confirm: $`),
      ])
    }
    t.equal(await balance(), '1050')
    t.equal((await json('account', 'list')).length, 1)

    const yes = answering(' -1050 ')
    t.equal((await command(['wallet', 'adjust', account, '-1050', '--reason', 'x'], yes.wiring)).code, 0)
    t.match(yes.asked, [/^This would take 1050 credits from acc_/])
    t.equal(await balance(), '0')
    t.equal((await json('wallet', 'topup', account, '2000', '--yes')).balance, '2000')
    const unread = { ...wiring, loadConfig: noEngines.loadConfig }
    const forced = ['wallet', 'topup', account, '2000', '--yes', '--reference', 'pay 1']
    t.equal((await command(forced, unread)).code, 0, '--yes needs no configuration')
    const before = (await json('account', 'list')).length
    t.match(
      await refused('account', 'create', '--name', 'Rich', '--credit', '1001'),
      /This would give Rich a credit of 1001, which is more than wallet\.confirm_above \(1000\)\. Add --yes/,
    )
    t.equal((await json('account', 'list')).length, before)
    const usual = await json('account', 'create', '--name', 'Usual', '--credit', '1000')
    t.equal(usual.wallet.balance, '1000')
    const rich = await json('account', 'create', '--name', 'Rich', '--credit', '1001', '--yes')
    t.equal(rich.wallet.balance, '1001')
  })

  t.test('so does the refund of a large charge, in full or in part', async (t) => {
    const { id } = await json('account', 'create', '--name', 'Refunded', '--credit', '0')
    const call = settlement(id, { cost: String(1_500n * ONE_CREDIT) })
    await database.bookings.book([call])
    const refund = ['wallet', 'refund', id, call.request_id, '--reason', 'the answer was empty']
    for (const [words, credits] of [
      [refund, '1500'],
      [[...refund, '--amount', '1001'], '1001'],
    ] as const)
      t.match(
        await refused(...words),
        `This would give ${id} back ${credits} credits of ${call.request_id}, which is more than wallet.confirm_above (1000)`,
      )
    t.match(
      await refused('wallet', 'refund', id, 'req_none', '--reason', 'x'),
      /No charge of req_none/,
      'nothing is asked where nothing was charged',
    )
    const yes = answering('1500')
    t.equal((await command(refund, yes.wiring)).code, 0)
    t.equal(yes.asked.length, 1)
    t.equal((await json('wallet', 'show', id)).balance, '0')
    t.match(await json(...refund, '--yes'), { repeated: true })
  })

  t.test('what cannot be undone is asked about by name, and needs --yes without a terminal', async (t) => {
    const make = async (...words: string[]) => (await json(...words)).id as string
    const owner = await make('account', 'create', '--name', 'A\u001b[31m', '--kind', 'organization')
    const member = await make('account', 'create', '--name', 'Ann')
    await json('member', 'add', '--organization', owner, '--account', member)
    const key = await make('key', 'create', '--account', owner, '--name', 'laptop')
    const limit = ['--amount', '1', '--period', 'day']
    const budget = await make('budget', 'set', '--account', owner, ...limit)
    const base = await make('kb', 'create', '--account', owner, '--name', 'Handbook')
    const url = 'http://127.0.0.1:9/hook'
    const endpoint = await make('webhook', 'create', '--account', owner, '--url', url)
    const token = await make('token', 'create', '--name', 'reports', '--scopes', 'read')
    const user = await make('user', 'create', '--email', 'eve@example.com', '--name', 'Eve')
    const { id: agent } = await database.agents.create(owner, {
      name: 'Clerk',
      model: 'sonata-small',
      persona: 'A clerk.',
      temperature: null,
      knowledge: [],
      web_search: false,
      image_generation: false,
    })
    const changes = async () => (await json('audit', '--limit', '1'))[0].id
    const before = await changes()
    for (const [line, text, id, typed] of [
      [
        'account disable ID',
        'refuse every key of A?[31m (ID) until the account is enabled again',
        owner,
        'A?[31m',
      ],
      [
        'user disable ID',
        'end the sessions of eve@example.com (ID) and refuse new ones',
        user,
        'eve@example.com',
      ],
      [
        `member remove --organization ${owner} --account ID`,
        `remove Ann (ID) from ${owner} and revoke the keys issued to that member`,
        member,
        'Ann',
      ],
      [
        'budget delete ID',
        'delete the budget ID of A?[31m, which then no longer limits what is spent',
        budget,
        'A?[31m',
      ],
      [
        'kb delete ID',
        'delete the knowledge base Handbook (ID) for good, with all its pages and files, and agents that use it would lose it',
        base,
        'Handbook',
      ],
      [
        'webhook delete ID',
        `delete the endpoint ${url} (ID) for good, with its deliveries, including those that are waiting`,
        endpoint,
        '127.0.0.1:9',
      ],
      [
        'agent delete ID',
        'delete the agent Clerk (ID) for good, and its keys would stop working',
        agent,
        'Clerk',
      ],
      ['agent unpublish ID', 'refuse the calls of the agent Clerk (ID) until it is published again', agent],
      [
        'key revoke ID',
        'revoke the key laptop (ID) for good, and its calls would be refused at once',
        key,
        'laptop',
      ],
      [
        'key end-former ID',
        'end the former secret of the key laptop (ID) for good, and programs that still use it would be refused',
        key,
        'laptop',
      ],
      ['key update ID --disable', 'refuse the calls of the key laptop (ID) until it is enabled again', key],
      [
        'token revoke ID',
        'revoke the token reports (ID) for good, and programs that use it would be refused',
        token,
        'reports',
      ],
      ['task cancel ID', 'cancel the task ID for good, at its provider too, and refund it in full', 'vid_1'],
      [
        'task fail ID --reason lost',
        'end the task ID as failed, cancel it at its provider, and refund it in full',
        'vid_1',
      ],
    ] as const) {
      const words = line.replace('ID', id).split(' ')
      const effect = `This would ${text.replace('ID', id)}`
      t.equal(await refused(...words), `error: ${effect}. Add --yes to confirm. Nothing was changed.\n`)
      // If a name is required, a y is not enough.
      const no = answering(typed === undefined ? 'n' : 'y')
      t.match(await command(words, no.wiring), { code: 1, stderr: 'error: Nothing was changed.\n' })
      const question = typed === undefined ? 'Do it? [y/N]' : `Type ${typed} to confirm:`
      t.same(no.asked, [`${effect}. ${question} `])
    }
    t.match(
      await refused('key', 'revoke', 'key_x'),
      /no key key_x/,
      'nothing is asked about what is not there',
    )
    t.equal(await changes(), before)
    const yes = answering('laptop')
    t.equal((await command(['key', 'revoke', key], yes.wiring)).code, 0)
    t.equal(yes.asked.length, 1)
    t.type((await json('key', 'show', key)).revoked_at, 'string')
  })

  t.test('a repeated command with a reference says so and changes nothing', async (t) => {
    const before = await balance()
    const again = await json('wallet', 'topup', account, '2000', '--yes', '--reference', 'pay 1')
    t.match(again, { balance: before, repeated: true, entry: { amount: '2000', reference: 'pay 1' } })
    t.match(
      await text('wallet', 'topup', account, '2000', '--yes', '--reference', 'pay 1'),
      /repeated +the reference was booked earlier; nothing was changed/,
    )
    t.match(
      await refused('wallet', 'topup', account, '2001', '--yes', '--reference', 'pay 1'),
      /The reference "pay 1" belongs to another entry/,
    )
    const down = await json('wallet', 'adjust', account, '-0.5', '--reason', 'a slip', '--reference', 'fix 1')
    t.match(down, { repeated: false, entry: { kind: 'adjustment', amount: '-0.5', note: 'a slip' } })
    const ledger = await text('wallet', 'ledger', account, '--limit', '1')
    t.match(ledger, /^id .* actor +reference +note\n\d+ .* adjustment +-0\.5 .* fix 1 +a slip\n$/)
  })

  t.test('an adjustment names its reason', async (t) => {
    for (const words of [
      ['wallet', 'adjust', account, '-1'],
      ['wallet', 'adjust', account, '-1', '--reason', '  '],
      ['wallet', 'adjust', account, 'much', '--reason', 'x'],
      ['wallet', 'topup', account, '500', '--reference', ''],
    ])
      t.equal((await command(words, wiring)).code, 2, words.join(' '))
    t.match(await refused('wallet', 'adjust', account, '0', '--reason', 'x'), /changes nothing/)
  })

  t.test('a model that the configuration does not have is refused with the nearest name', async (t) => {
    const { id } = await json('key', 'create', '--account', account, '--name', 'k', '--models', 'sonata')
    const organization = (await json('account', 'create', '--name', 'Org', '--kind', 'organization'))
      .id as string
    const member = (await json('account', 'create', '--name', 'Ada')).id as string
    await json('member', 'add', '--organization', organization, '--account', member, '--role', 'admin')
    const asked = ['key', 'request', '--organization', organization, '--by', member, '--name', 'laptop']
    const request = (await json(...asked)).id as string
    const lists = [
      ['key', 'create', '--account', account, '--name', 'k'],
      ['key', 'update', id],
      ['account', 'models', account],
      ['key', 'approve', request, '--by', member, '--spend-cap', '1'],
    ]
    for (const words of lists) {
      const told = await refused(...words, '--models', 'sonata-large,sonata-lagre,other')
      t.match(
        told,
        'error: --models: The configuration has no model "sonata-lagre". Did you mean "sonata-large"? ' +
          'The configuration has no model "other".\n',
        words.join(' '),
      )
    }
    t.same((await json('key', 'show', id)).allowed_models, ['sonata'])
    t.same((await json('key', 'update', id, '--models', 'sonata-small')).allowed_models, ['sonata-small'])
    t.same((await json('key', 'update', id, '--models', 'none')).allowed_models, [])
    const unread = { ...wiring, loadConfig: noEngines.loadConfig }
    t.equal((await command(['key', 'update', id, '--models', 'all'], unread)).code, 0, 'all needs no look-up')
  })

  t.test('accounts and keys have the same limits, as large as the database keeps', async (t) => {
    const { id } = await json('key', 'create', '--account', account, '--name', 'fast')
    for (const words of [
      ['account', 'limits', account],
      ['key', 'update', id],
    ])
      for (const limit of ['1500000', '2147483647', '2147483648']) {
        const { code, stderr } = await command([...words, '--rpm', limit, '--concurrency', limit], wiring)
        t.equal(code, limit === '2147483648' ? 2 : 0, `${words.join(' ')} ${limit}`)
        if (code !== 0) t.match(stderr, 'It must be a whole number from 1 to 2147483647, or "none".')
      }
    await json('account', 'limits', account, '--rpm', 'none', '--concurrency', 'none')
  })

  t.test('an expiry that is past is wrong usage', async (t) => {
    const { id } = await json('key', 'create', '--account', account, '--name', 'k', '--expires', '2999-01-01')
    for (const words of [
      ['key', 'create', '--account', account, '--name', 'k'],
      ['key', 'update', id],
      ['key', 'approve', 'kreq_x', '--by', account, '--spend-cap', '1'],
    ]) {
      const { code, stderr } = await command([...words, '--expires', '2020-01-01T00:00:00Z'], wiring)
      t.equal(code, 2)
      t.match(stderr, /It is in the past: the key would be refused at once/)
    }
    t.equal((await json('key', 'show', id)).expires_at, '2999-01-01T00:00:00.000Z')
    t.equal((await json('key', 'update', id, '--expires', 'never')).expires_at, null)
  })
})

t.test('agents from their files', async (t) => {
  const { database } = await openFresh(t, engines)
  const config = {
    models: [
      { id: 'sonata-large', aliases: ['sonata'], capabilities: { web_search: true } },
      { id: 'upcoming', callable: false },
    ],
  }
  const wiring = wiringOn(database, config, { ask: async () => null })
  const { json, refused, text } = commandsOn(wiring)
  const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

  const folder = t.testdir({})
  const fileOf = async (content: string, name = 'agent.yaml') => {
    const path = join(folder, name)
    await writeFile(path, content)
    return path
  }
  const account = async (kind: 'organization' | 'personal' = 'organization') =>
    (await database.accounts.create({ name: 'Acme', kind, credit: 0n })).account.id

  const PLAIN = 'name: Support\nmodel: sonata\npersona: Be polite.\n'

  t.test('an agent from its file to its end', async (t) => {
    const accountId = await account()
    const path = await fileOf(`${PLAIN}temperature: 0.2\nknowledge: [default]\nweb_search: true\n`)
    const created = await json('agent', 'create', '--account', accountId, '--file', path)
    const expected = {
      id: created.id,
      account_id: accountId,
      name: 'Support',
      model: 'sonata',
      persona: 'Be polite.',
      temperature: 0.2,
      knowledge: ['default'],
      web_search: true,
      image_generation: false,
      state: 'draft',
      created_at: created.created_at,
      draft: null,
      drafted_at: null,
      updated_at: created.created_at,
    }
    t.match(created.id, /^agt_[0-9A-Z]{26}$/)
    t.match(created.created_at, TIME)
    t.same(created, expected)
    t.same(await json('agent', 'show', created.id), expected)
    t.same(await json('agent', 'list', '--account', accountId), [expected])

    const changed = await json('agent', 'update', created.id, '--file', await fileOf(`${PLAIN}`))
    t.match(changed, {
      temperature: null,
      knowledge: { length: 0 },
      web_search: false,
      created_at: created.created_at,
    })
    const published = await json('agent', 'publish', created.id)
    t.equal(published.state, 'published')
    t.same(await json('agent', 'publish', created.id), published, 'a second time changes nothing')
    t.equal((await json('agent', 'unpublish', created.id, '--yes')).state, 'draft')
    t.match(await text('agent', 'show', created.id), /^name +Support$/m)

    const bound = ['--account', accountId, '--name', 'shop', '--kind', 'agent', '--agent', created.id]
    const key = await json('key', 'create', ...bound, '--spend-cap', '5')
    t.match(key, { kind: 'agent', agent_id: created.id, spend_cap: '5', revoked_at: null })
    t.match(
      await refused('agent', 'delete', created.id),
      /delete the agent Support \(agt_\S+\) for good.*Add --yes/,
    )
    t.equal((await json('agent', 'show', created.id)).state, 'draft', 'without an answer it stays')
    t.equal((await json('agent', 'delete', created.id, '--yes')).state, 'deleted')
    t.equal((await json('key', 'show', key.id)).revoked_at, null, 'calls get an error about the agent')
    t.equal((await json('agent', 'delete', created.id, '--yes')).state, 'deleted')
    t.same(await json('agent', 'list', '--account', accountId), [])
    t.match(await json('agent', 'list', '--account', accountId, '--deleted'), [
      { id: created.id, state: 'deleted' },
    ])
    for (const words of [
      ['agent', 'publish', created.id],
      ['agent', 'update', created.id, '--file', path],
      ['key', 'create', ...bound],
    ])
      t.match(await refused(...words), `error: Agent ${created.id} has been deleted.\n`, words.join(' '))
  })

  t.test('an agent belongs to an organization, and its keys to that', async (t) => {
    const path = await fileOf(PLAIN)
    const [own, other, person] = [await account(), await account(), await account('personal')]
    t.match(await refused('agent', 'create', '--account', person, '--file', path), /organization/)
    t.match(
      await refused('agent', 'create', '--account', 'acc_x', '--file', path),
      /There is no account acc_x/,
    )
    t.match(await refused('agent', 'show', 'agt_x'), 'error: There is no agent agt_x.\n')
    const { id } = await json('agent', 'create', '--account', own, '--file', path)
    t.match(
      await refused('key', 'create', '--account', other, '--name', 'n', '--kind', 'agent', '--agent', id),
      `error: There is no agent ${id}.\n`,
    )
    t.same(await json('agent', 'list', '--account', other), [])
    t.match(await refused('agent', 'list', '--account', 'acc_x'), /There is no account/)
  })

  t.test('each problem of a file is reported with its place', async (t) => {
    const accountId = await account()
    const broken = async (content: string, name?: string) => {
      const path = await fileOf(content, name)
      const told = await refused('agent', 'create', '--account', accountId, '--file', path)
      return told.replaceAll(path, 'F')
    }
    t.equal(
      await broken(
        'name: ""\nmodel: m\npersonna: x\ntemperature: 3\nknowledge: default\nweb_search: "yes"\n',
      ),
      [
        'error: The agent file has problems:',
        'F:1:1 persona: is required.',
        'F:1:7 name: must be at least 1 characters long.',
        'F:3:1 personna: There is no such field. Did you mean "persona"?',
        'F:4:14 temperature: must be at most 2.',
        'F:5:12 knowledge: must be a list, not a string.',
        'F:6:13 web_search: must be a boolean, not a string.',
        '',
      ].join('\n'),
    )
    t.match(await broken('name: [\n'), /^error: The agent file has problems:\nF:\d+:\d+ /)
    t.match(await broken(' \n'), /F:1:1 The file is empty\./)
    t.match(await broken('#'.repeat(300_000)), /F:1:1 It is over 262144 bytes\./)
    t.match(
      await refused('agent', 'create', '--account', accountId, '--file', 'nowhere.yaml'),
      /nowhere\.yaml:1:1 There is no such file\./,
    )
  })

  t.test('a persona may speak of variables: nothing is filled in', async (t) => {
    const path = await fileOf('name: A\nmodel: sonata\npersona: Say ${PATH} as it is.\n')
    const { persona } = await json('agent', 'create', '--account', await account(), '--file', path)
    t.equal(persona, 'Say ${PATH} as it is.')
  })

  t.test('what calls would be refused for is a warning of the answer', async (t) => {
    const accountId = await account()
    const warned = async (content: string) => {
      const words = ['agent', 'create', '--account', accountId, '--file', await fileOf(content)]
      const { code, stdout, stderr } = await command([...words, '--json'], wiring)
      t.match([code, JSON.parse(stdout).state], [0, 'draft'])
      return { id: JSON.parse(stdout).id as string, stderr }
    }
    const unknown = await warned('name: A\nmodel: sonata-larg\npersona: x\nknowledge: [kb_x, default]\n')
    t.match(unknown.stderr, 'no model "sonata-larg". Did you mean "sonata-large"?')
    t.match(unknown.stderr, `"kb_x": kb grant kb_x --to ${unknown.id}`)
    t.equal(unknown.stderr.split('\n').length, 3)
    t.match(await command(['agent', 'publish', unknown.id], wiring), {
      code: 1,
      stderr: /would be refused: .*no model/,
    })
    t.match((await warned('name: A\nmodel: upcoming\npersona: x\n')).stderr, /none that chat calls may use/)
    const drawing = await warned(
      'name: A\nmodel: sonata\npersona: x\nimage_generation: true\nweb_search: true\n',
    )
    t.match(drawing.stderr, /^warning: .*: image_generation is on, .*\n$/)
  })
})

t.test('audit records every act', async (t) => {
  const ACTOR = `operator:${userInfo().username}`
  const { database: other, sql, url, masterKey } = await openFresh(t, engines)
  const database = await openDatabase({ url, masterKey, maxConnections: 2, actor: ACTOR })
  t.teardown(() => database.close())
  const config = {
    models: ['fast', 'slow'].map((id) => ({ id, pricing: { unit: '1M_tokens', input: '1', output: '1' } })),
    channels: [
      {
        id: 'one',
        protocol: 'chat-completions',
        base_url: 'http://one.test/v1',
        api_key: 'x',
        models: { fast: 'fast' },
      },
    ],
  }
  const wiring = wiringOn(database, config, { actor: () => ACTOR })
  const { json, text } = commandsOn(wiring)

  const folder = mkdtempSync(join(tmpdir(), 'tollgate-audit-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  const agentFile = join(folder, 'agent.yaml')

  /** Whatever was recorded since, the oldest first. */
  let last = 0
  async function newEntries(): Promise<Entry[]> {
    const entries: Entry[] = await json('audit', '--limit', '1000')
    const fresh = entries.filter(({ id }) => id > last).reverse()
    last = fresh.at(-1)?.id ?? last
    return fresh
  }

  t.test('every act of the command line leaves who did what, before and after', async (t) => {
    writeFileSync(agentFile, 'name: Support\nmodel: fast\npersona: You are polite.\n')
    for (const [command, keep, expected] of listAuditedCommands({ actor: ACTOR, agentFile })) {
      const answer = await json(...words(command))
      for (const [name, field] of Object.entries(keep)) ids[name] = answer[field]
      const found = await newEntries()
      const wanted = expected().map((entry) => ({ actor: ACTOR, ...entry }))
      t.match(found, wanted, command)
      t.equal(found.length, wanted.length, `${command}: as many entries as acts`)
    }
  })

  t.test('an import is an act, and so is the end of a base', async (t) => {
    const baseId = ids.kb!
    await database.knowledge.grantBase(baseId, ids.ann!)
    await newEntries()
    await database.knowledge.importPages({
      baseId,
      drafts: (async function* () {})(),
      present: new Map(),
      prune: false,
    })
    const after = { pages: 0, added: 0, changed: 0, removed: 0 }
    t.match(await newEntries(), [
      { actor: ACTOR, action: 'kb.import', account_id: ids.org, subject_id: baseId, after },
    ])
    await database.knowledge.deleteBase(baseId)
    const gone = (await newEntries()).map(({ action, subject_id }) => `${action} ${subject_id}`)
    t.same(gone.sort(), [`kb.delete ${baseId}`, `kb.revoke ${baseId}`])
  })

  t.test('a reader sees of each field what it was and what it is', async (t) => {
    await recordOperation(sql, {
      action: 'test.change',
      accountId: null,
      subjectId: 'told',
      before: { file: { model: 'slow', name: 'A' }, cap: null },
      after: { file: { model: 'fast', name: 'A' }, cap: '5', note: 'a\nb' },
    })
    const [head, ...changes] = (await text('audit', '--subject', 'told')).split('\n')
    t.match(head, /^\d+ {2}\d{4}-.+ {2}test\.change {2}- {2}told$/)
    t.same(changes, ['    cap: - -> 5', '    file.model: slow -> fast', '    note: - -> a?b', ''])
    t.equal(await text('audit', '--subject', 'nobody'), 'none\n')
    const { stdout } = await command(['audit', '--subject', 'told'], wiring, true)
    t.equal(stripVTControlCharacters(stdout), [head, ...changes].join('\n'), 'colours add nothing else')
    t.match(stdout, '\x1b[33mtest.change\x1b[39m')
    await newEntries()
  })

  t.test('nothing that looks on is an act', async (t) => {
    for (const command of ['account list', 'account show {org}', 'wallet show {org}', 'wallet ledger {org}'])
      await json(...words(command))
    for (const command of ['key list --account {org}', 'key show {lap}', 'key requests --organization {org}'])
      await json(...words(command))
    await json(...words('member list --organization {org}'))
    t.same(await newEntries(), [])
  })

  t.test('a refused act leaves nothing', async (t) => {
    await t.rejects(other.organizations.putMember(ids.org!, ids.org!, 'admin'), {
      code: 'not_a_personal_account',
    })
    await t.rejects(other.keys.update(ids.lap!, { enabled: true }), { code: 'key_revoked' })
    await t.rejects(other.wallets.topUp(ids.org!, 1n), { code: 'top_up_too_small' })
    t.same(await newEntries(), [])
  })

  t.test('entries are found by account, subject and time', async (t) => {
    const ofKey: Entry[] = await json('audit', '--subject', ids.lap!)
    t.same(
      ofKey.map(({ action }) => action),
      ['key.revoke', 'key.enable', 'key.disable', 'key.update', 'key.reveal', 'key.create'],
    )
    const ofBob: Entry[] = await json('audit', '--account', ids.bob!)
    t.same(
      ofBob.map(({ action }) => action),
      ['account.create'],
    )
    t.same(await json('audit', '--since', '2999-01-01'), [])
    t.same(await json('audit', '--since', '2999-01-01', '--account', ids.bob!), [])
    await t.rejects(json('audit', '--account', 'acc_nobody'), /There is no account acc_nobody/)
    t.equal((await json('audit', '--since', '2000-01-01', '--limit', '3')).length, 3)
    t.equal((await json('audit', '--until', '2999-01-01', '--limit', '3')).length, 3)
    t.same(await json('audit', '--until', '2000-01-01'), [])
  })

  t.test('nothing secret is recorded', async (t) => {
    const { raw } = await other.keys.create({ accountId: ids.org!, name: 'secret' })
    const rows = await sql<{ text: string }[]>`SELECT e::text AS text FROM audit_entries AS e`
    const [stored] = await sql<[{ hash: string; sealed: string }]>`
    SELECT encode(key_hash, 'hex') AS hash, encode(sealed_key, 'hex') AS sealed FROM api_keys
    WHERE name = 'secret'`
    for (const secret of [raw.slice(20), stored.hash, stored.sealed])
      t.notOk(rows.some(({ text }) => text.includes(secret)))
  })

  t.test('a change of a row by another program has an author as well', async (t) => {
    await newEntries()
    await sql`UPDATE accounts SET enabled = false WHERE id = ${ids.ann!}`
    const [{ role }] = await sql<[{ role: string }]>`SELECT session_user AS role`
    t.match(await newEntries(), [
      { actor: `database:${role}`, action: 'account.disable', subject_id: ids.ann },
    ])
  })

  t.test('an entry stays as it is', async (t) => {
    const refused = /only ever added to/
    await t.rejects(sql`UPDATE audit_entries SET actor = 'nobody'`, refused)
    await t.rejects(sql`DELETE FROM audit_entries`, refused)
    await t.rejects(sql`TRUNCATE audit_entries`, refused)
    await recordOperation(sql, {
      action: 'test.act',
      accountId: null,
      subjectId: 'x',
      before: { a: 1 },
      after: null,
    })
    t.match(await newEntries(), [{ action: 'test.act', account_id: null, before: { a: 1 }, after: null }])
  })
})

t.test('budgets are set listed and ended', async (t) => {
  // `tollgate budget …`, by the acts of the management API, on a real PostgreSQL.
  const { database } = await openFresh(t, engines)
  const wiring = wiringOn(database)
  const { json, refused } = commandsOn(wiring)

  t.test('a budget is set, replaced, listed and deleted, in the name of the operator', async (t) => {
    const account = await newAccount(database)
    const { key } = await database.keys.create({ accountId: account, kind: 'console', name: 'a key' })
    const set = (...words: string[]) => json('budget', 'set', '--account', account, ...words)
    const week = await set('--amount', '500', '--period', 'week', '--timezone', 'Europe/Berlin')
    t.match(week, { amount: '500', period: 'week', timezone: 'Europe/Berlin' })
    t.match(await set('--amount', '400', '--period', 'week'), { id: week.id, amount: '400', timezone: 'UTC' })
    const day = await set('--key', key.id, '--amount', '1.5', '--period', 'day')
    t.match(day, { key_id: key.id, amount: '1.5', period: 'day' })
    const ids = async (of: string) =>
      (await json('budget', 'list', '--account', of)).map(({ id }: { id: string }) => id).sort()
    t.same(await ids(account), [week.id, day.id].sort())
    t.same(await ids(await newAccount(database)), [])
    await json('budget', 'delete', week.id, '--yes')
    t.same(await ids(account), [day.id])
    t.match(await refused('budget', 'delete', week.id, '--yes'), /no budget/)
    const acts = await database.auditRecord.list({ accountId: account, action: 'budget', limit: 10 })
    t.ok(acts.length >= 4)
    t.ok(acts.every(({ actor }) => actor === 'operator:test'))
  })

  t.test('wrong amounts, periods, time zones and subjects are refused', async (t) => {
    const [account, stranger] = [await newAccount(database), await newAccount(database)]
    const { key } = await database.keys.create({ accountId: stranger, kind: 'console', name: 'theirs' })
    const set = ['budget', 'set', '--account', account]
    const code = async (...words: string[]) => (await command([...set, ...words], wiring)).code
    t.equal(await code('--amount', '0', '--period', 'day'), 2)
    t.equal(await code('--amount', '5', '--period', 'year'), 2)
    t.equal(await code('--period', 'day'), 2)
    t.equal(await code('--amount', '5', '--period', 'day', '--key', key.id, '--member', stranger), 2)
    const day = ['--amount', '5', '--period', 'day']
    t.match(await refused(...set, ...day, '--timezone', 'Moon/Base'), /Moon\/Base/)
    t.match(await refused(...set, ...day, '--key', key.id), new RegExp(key.id))
    t.same(await json('budget', 'list', '--account', account), [])
  })
})

t.test('kb import walk', async (t) => {
  const { database, sql, url, masterKey } = await openFresh(t, engines)
  const folder = join(engines.dataDir, 'handbook')
  const store = await FolderStore.open(join(engines.dataDir, 'files'), fileLinks('', linkKey(masterKey)))
  const wiring = wiringOn(database, undefined, { store: async () => store })
  const { json, refused, text } = commandsOn(wiring)
  const account = await newAccount(database)

  function write(path: string, content: string | Buffer): void {
    mkdirSync(dirname(join(folder, path)), { recursive: true })
    writeFileSync(join(folder, path), content)
  }

  const importInto = (...words: string[]) => json('kb', 'import', '--account', account, folder, ...words)

  t.test('bases are made, listed, shown', async (t) => {
    const created = await json('kb', 'create', '--account', account, '--name', 'Handbook')
    t.match(created, {
      account_id: account,
      name: 'Handbook',
      is_default: false,
      pages: 0,
      readers: { length: 0 },
    })
    t.match(created.id, /^kb_[0-9A-Z]{26}$/)
    t.same(await json('kb', 'show', created.id), created)
    t.same(await json('kb', 'list', '--account', account), [created])
    const reader = await newAccount(database)
    t.same((await json('kb', 'grant', created.id, '--to', reader)).readers, [reader])
    t.same((await json('kb', 'grant', created.id, '--to', reader)).readers, [reader])
    t.same((await json('kb', 'revoke', created.id, '--to', reader)).readers, [])
    t.match(await refused('kb', 'revoke', created.id, '--to', reader), /was not granted to/)
    t.match(
      await refused('kb', 'grant', created.id, '--to', 'acc_x'),
      /neither an account nor an agent acc_x/,
    )
    t.match(await refused('kb', 'list', '--account', 'acc_x'), /no account acc_x/)
    t.same(await json('kb', 'delete', created.id, '--yes'), created)
    t.match(await refused('kb', 'show', created.id), /no knowledge base kb_/)
  })

  t.test('a folder that is not there, or has no page', async (t) => {
    t.match(
      await refused('kb', 'import', '--account', account, join(folder, 'gone')),
      /There is no folder .*gone/,
    )
    mkdirSync(folder, { recursive: true })
    t.match(await refused('kb', 'import', '--account', account, folder), /no Markdown file/)
    t.match(await refused('kb', 'import', '--account', 'acc_x', folder), /no account acc_x/)
    t.same(await json('kb', 'list', '--account', account), [], 'no base was made for it')
  })

  t.test(
    "an import that is refused makes no base, and one that is not makes the account's own",
    async (t) => {
      const other = await newAccount(database)
      write('index.md', '---\nneeds_review: maybe\n---\n')
      t.equal((await command(['kb', 'import', '--account', other, folder], wiring)).code, 1)
      t.same(await json('kb', 'list', '--account', other), [])
      write('index.md', '# Start\n')
      const { kb_id: id } = await json('kb', 'import', '--account', other, folder)
      t.match(await json('kb', 'list', '--account', other), [
        { id, account_id: other, name: 'default', is_default: true, pages: 1 },
      ])
      t.match(await json('kb', 'import', '--account', other, folder), { kb_id: id, unchanged: 1 })
    },
  )

  t.test(
    'of two first imports at once one makes the base, and the other says that it was late',
    async (t) => {
      const other = await newAccount(database)
      const second = { baseId: newId('kb'), ownerId: other, present: new Map(), prune: false }
      const drafts = async function* () {
        await json('kb', 'import', '--account', other, folder)
        yield []
      }
      await t.rejects(database.knowledge.importPages({ ...second, drafts: drafts() }), {
        code: 'import_conflict',
      })
      t.match(await json('kb', 'list', '--account', other), [{ is_default: true, pages: 1 }])
    },
  )

  t.test('import, and again: only what has changed', async (t) => {
    write('index.md', '# Start\n\nSee [[Holidays]], [[leave|days off]] and [[Nowhere]].\n')
    write(
      'hr/holidays.md',
      '---\ntitle: Holidays\naliases: Leave, 休假\ntags: [HR]\nlayout: wide\n---\nThirty days.\n',
    )
    write('hr/notes.txt', 'not a page')
    write('.git/hidden.md', '---\nbad')
    write('made.markdown', '---\nsource: { filename: hr/notes.txt, locator: line 1 }\n---\n中文\n')
    const first = await importInto()
    t.match(first, { ok: true, pages: 3, added: 3, changed: 0, unchanged: 0, gone: 0 })
    t.same(first.unresolved_links, { count: 1, first: [{ path: 'index.md', link: 'Nowhere' }] })
    t.same(first.ignored_fields, { layout: 1 })
    t.match(await importInto(), { added: 0, changed: 0, unchanged: 3 })
    const [base] = await database.knowledge.listReadableBases({ accountId: account })
    const [made] = await database.knowledge.listPagesByTag([base!], 'hr', 5)
    const [page] = await database.knowledge.readPages([base!], [made!.id])
    t.match(page, { kb_id: 'default', title: 'Holidays', body: 'Thirty days.', aliases: ['Leave', '休假'] })

    write('hr/notes.txt', 'other content')
    t.match(await importInto(), { changed: 1, unchanged: 2 }, 'a changed source is a changed page')
    write('hr/holidays.md', 'No front matter any more.')
    t.match(await importInto(), { changed: 1, unchanged: 2, unresolved_links: { count: 2 } })
    t.same((await database.knowledge.readPages([base!], [made!.id]))[0]?.title, 'holidays')
  })

  t.test('sources are in the object store, and the answer says what to check', async (t) => {
    const bases = await database.knowledge.listReadableBases({ accountId: account })
    const rows = await sql<{ id: string }[]>`SELECT id FROM wiki_pages WHERE path = 'made.markdown'`
    const [page] = await database.knowledge.readPages(bases, [rows[0]?.id ?? ''])
    t.match(page?.source, { filename: 'hr/notes.txt', locator: 'line 1', compiled_at: null, model: null })
    const object = await store.get(page?.source?.r2_key ?? '')
    t.equal(object?.mediaType, 'text/plain; charset=utf-8')
    t.equal((await object?.stream.toArray())?.join(''), 'other content')
    const told = await text('kb', 'import', '--account', account, '--kb', 'default', folder)
    t.match(
      told,
      /pages +3\nadded +0\nchanged +0\nunchanged +3\n[\s\S]*unresolved_links\n {2}count +2\n\n? +first\n +path +link\n +index\.md +leave\n/,
    )
  })

  t.test('gone files: kept and named, then pruned', async (t) => {
    rmSync(join(folder, 'index.md'))
    t.match(await importInto(), { pages: 3, gone: 1, gone_paths: ['index.md'], pruned: false })
    t.match(
      await text('kb', 'import', '--account', account, folder),
      /pruned +no: --prune removes the pages whose files are gone\ngone_paths +index\.md\n/,
    )
    t.match(await importInto('--prune'), { pages: 2, gone: 1, pruned: true, unresolved_links: { count: 0 } })
    t.match(await importInto('--prune'), { pages: 2, gone: 0 })
  })

  t.test('bad files: all are named with their lines, nothing is changed', async (t) => {
    write('good.md', 'fine')
    write('bad/tags.md', '---\ntitle: x\ntags: { a: 1 }\nneeds_review: maybe\n---\n')
    write('bad/bytes.md', Buffer.from([0x61, 0x0a, 0xff, 0xfe]))
    write('bad/line.md', '*_a'.repeat(500_000))
    write('bad/source.md', '---\nsource: missing.pdf\n---\n')
    write('bad/escape.md', '---\n\nsource: ../../../../../../../../etc/passwd\n---\n')
    symlinkSync('/etc/hostname', join(folder, 'bad/out.md'))
    const { code, stdout, stderr } = await command(
      ['kb', 'import', '--account', account, '--prune', folder, '--json'],
      wiring,
    )
    t.same({ code, stderr }, { code: 1, stderr: '' })
    const { ok, problems } = JSON.parse(stdout)
    t.equal(ok, false)
    const found = problems.map(({ file, line }: { file: string; line: number }) => `${file}:${line}`)
    t.same(found, [
      'bad/bytes.md:2',
      'bad/escape.md:3',
      'bad/line.md:1',
      'bad/out.md:1',
      'bad/source.md:2',
      'bad/tags.md:3',
      'bad/tags.md:4',
    ])
    const told = await command(['kb', 'import', '--account', account, folder], wiring)
    t.equal(told.code, 1)
    t.match(told.stdout, `${join(folder, 'bad/tags.md')}:3: tags must be a list`)
    t.match(told.stdout, /\n6 bad files; nothing was changed\n$/)
    const [base] = await database.knowledge.listReadableBases({ accountId: account })
    t.equal(base?.pages, 2)
    rmSync(join(folder, 'bad'), { recursive: true })
  })

  t.test("another account's base is not there", async (t) => {
    const other = await newAccount(database)
    const [base] = await database.knowledge.listBases(account)
    const words = ['kb', 'import', '--account', other, '--kb', base!.id, folder]
    t.match(await refused(...words), /no knowledge base kb_/)
  })

  t.test('the same as a program, with the store of the data directory', async (t) => {
    const env = {
      DATABASE_URL: url,
      TOLLGATE_DATA_DIR: engines.dataDir,
      TOLLGATE_MASTER_KEY: masterKey.toString('base64'),
    }
    const { code, stdout, stderr } = await tollgate(
      ['kb', 'import', '--account', account, folder, '--json'],
      env,
    )
    t.same({ code, stderr }, { code: 0, stderr: '' })
    t.match(JSON.parse(stdout), { added: 1, unchanged: 2, pages: 3 })
  })
})

t.test('logs find', async (t) => {
  const { database, sql } = await openFresh(t, engines)
  const root = join(engines.dataDir, 'journal')
  const { json, text, refused } = commandsOn(
    wiringOn(database, undefined, { settings: () => ({ dataDir: engines.dataDir }) as Settings }),
  )
  const accountId = await newAccount(database)
  const { key } = await database.keys.create({ accountId, name: 'Laptop' })
  const silent = { info() {}, warn() {}, error() {} }

  const attempt = {
    seq: 1,
    created_at: '2026-03-10T15:00:00.000Z',
    latency_ms: 9,
    error_code: 'upstream_error',
    error_message: 'busy \u001b[31m',
  }

  /** Of the first call. */
  let rowId = ''

  t.test('a booked call: who, what, how it ended, and what became of its money', async (t) => {
    const call = settlement(accountId, {
      key_id: key.id,
      status: 'error',
      error_code: 'upstream_error',
      error_message: 'Too busy.',
      attempts_count: 2,
      attempts: [attempt],
      detail: '{"messages":3}',
    })
    await database.bookings.book([call])
    const found = await json('logs', 'find', call.request_id)
    t.match(found, {
      ref: call.request_id,
      place: 'booked',
      account_id: accountId,
      account_name: 'Test',
      call: {
        object: 'log',
        id: Number,
        request_id: call.request_id,
        account_id: accountId,
        key_id: key.id,
        key_name: 'Laptop',
        key_prefix: key.prefix,
        model: 'sonata-large',
        protocol: 'chat-completions',
        stream: true,
        status: 'error',
        error_code: 'upstream_error',
        error_message: 'Too busy.',
        input_tokens: 1200,
        output_tokens: 340,
        cached_tokens: 100,
        reasoning_tokens: 12,
        cost: '0.049',
        estimate: '0.96',
        usage_source: 'upstream',
        submitted_at: new Date(call.submitted_at).toISOString(),
        created_at: new Date(call.created_at).toISOString(),
        latency_ms: 1250,
        ttfb_ms: 120,
        channel_id: 'primary',
        attempts_count: 2,
        attempts: [attempt],
      },
      detail: {
        request: [
          { k: 'endpoint', v: 'POST /v1/chat/completions' },
          { k: 'protocol', v: 'chat-completions' },
          { k: 'model', v: 'sonata-large' },
          { k: 'stream', v: 'true' },
          { k: 'messages', v: '3' },
        ],
        request_note: /^Failed after 2 attempts \(upstream_error\): Too busy\./,
      },
      call_log: 'waiting',
      ledger: [{ kind: 'charge', amount: '-0.049', ref: call.request_id, account_id: accountId }],
      hold: null,
      refused: null,
      journal: null,
    })
    const { ref: _, ...rest } = found
    rowId = String(found.call.id)
    t.match(await json('logs', 'find', rowId), { ref: rowId, ...rest }, 'by the id of its row')

    const shown = await text('logs', 'find', call.request_id)
    for (const part of [
      /^ref +req_\w+\nplace +booked\naccount_id +acc_\w+\naccount_name +Test\ncall_log +waiting\n\ncall\n/,
      /\n {2}key_id +key_\w+\n {2}key_name +Laptop\n {2}key_prefix +sk-tollgate-/,
      /\n {2}status +error\n {2}error_code +upstream_error\n {2}error_message +Too busy\.\n/,
      /\n {2}input_tokens +1200\n/,
      /\n {2}cost +0\.049\n/,
      /\n {2}channel_id +primary\n/,
      /\n {2}booked_at +2/,
      /\n {2}attempts\n {4}seq .*\n {4}1 .* busy \?\[31m\n/,
      /\n\nledger\n {2}id .*\n {2}\d+ .* charge +-0\.049 /,
      /\n {2}request\n {4}endpoint +POST .*\n(.*\n)+ {4}messages +3\n\n {2}upstream\n/,
      /\n\ndetail\n {2}request_note +Failed after 2 attempts/,
    ])
      t.match(shown, part)
  })

  t.test('on its way to the call log, and there', async (t) => {
    const range = await database.callCopy.claimRange()
    t.match(await json('logs', 'find', rowId), { call_log: 'copying' })
    const later = settlement(accountId)
    await database.bookings.book([later])
    t.match(await json('logs', 'find', later.request_id), { call_log: 'waiting' })
    await database.callCopy.finishRange(range!)
    t.match(await json('logs', 'find', rowId), { call_log: 'copied' })
  })

  t.test('a call that the books refused', async (t) => {
    const call = settlement('acc_nobody')
    await database.bookings.book([call])
    t.match(await json('logs', 'find', call.request_id), {
      place: 'refused',
      call: null,
      refused: { reason: 'unknown account acc_nobody', settlement: { request_id: call.request_id } },
    })
    t.match(
      await text('logs', 'find', call.request_id),
      /\nplace +ended, and refused by the books\n[\s\S]*\nrefused\n {2}reason +unknown account acc_nobody\n/,
    )
  })

  t.test('a task by its hold', async (t) => {
    const ref = newId('vid')
    const task = await hold(database, accountId, 50_000_000n, ref)
    t.match(await json('logs', 'find', ref), {
      place: 'task',
      account_id: accountId,
      hold: { amount: '0.5', state: 'open', charged: '0', closed_at: null },
      ledger: [{ kind: 'hold', amount: '-0.5' }],
    })
    await settle(database, task, 20_000_000n)
    const { hold: closed, ledger } = await json('logs', 'find', ref)
    t.match(closed, { state: 'settled', charged: '0.2' })
    t.same(ledger.map(({ kind }: { kind: string }) => kind).sort(), ['charge', 'hold', 'release'])
    t.match(
      await text('logs', 'find', ref),
      /\nhold\n {2}ref .*\n.*\n {2}amount +0\.5\n {2}state +settled\n {2}charged +0\.2\n/,
    )
  })

  t.test('an open task by its id and by its request: state, hold, key and account', async (t) => {
    const video = newVideo(accountId, { keyId: key.id, hold: 50_000_000n })
    t.match(await database.tasks.create(video), { outcome: 'created' })
    for (const ref of [video.id, video.requestId]) {
      t.match(await json('logs', 'find', ref), {
        ref,
        place: 'task',
        account_id: accountId,
        account_name: 'Test',
        call: null,
        hold: { ref: video.id, amount: '0.5', state: 'open' },
        task: {
          id: video.id,
          kind: 'video',
          state: 'waiting',
          account_id: accountId,
          key_id: key.id,
          key_name: 'Laptop',
          request_id: video.requestId,
          model: 'motion-large',
          hold: '0.5',
          cost: null,
          ended_at: null,
        },
      })
      const shown = await text('logs', 'find', ref)
      t.match(shown, /\naccount_id +acc_\w+\naccount_name +Test\n/)
      t.match(shown, new RegExp(`\ntask\n {2}id +${video.id}\n {2}kind +video\n {2}state +waiting\n`))
      t.match(shown, /\n {2}key_name +Laptop\n/)
      t.match(shown, /\nhold\n {2}ref .*\n.*\n {2}amount +0\.5\n {2}state +open\n/)
    }
  })

  t.test('a charge that has lost its row', async (t) => {
    const call = settlement(accountId)
    await database.bookings.book([call])
    await sql`ALTER TABLE usage_rows DISABLE TRIGGER usage_rows_stay`
    await sql`DELETE FROM usage_rows WHERE request_id = ${call.request_id}`
    await sql`ALTER TABLE usage_rows ENABLE TRIGGER usage_rows_stay`
    t.match(await json('logs', 'find', call.request_id), { place: 'ledger_only', account_id: accountId })
  })

  t.test('a call that goes on, and one that ended and is not booked yet', async (t) => {
    const journal = await openJournal({ directory: join(root, 'gateway-0'), log: silent })
    t.teardown(() => journal.close())
    const call = settlement(accountId, { key_id: key.id })
    const ticket = await admit(journal, call)
    const inFlight = await json('logs', 'find', call.request_id)
    t.match(inFlight, {
      place: 'in_flight',
      account_id: accountId,
      call: null,
      journal: {
        is_live: true,
        admission: { request_id: call.request_id, model: 'sonata-large', estimate: '0.96' },
        settlement: null,
      },
    })
    t.match(
      await text('logs', 'find', call.request_id),
      /\nplace +still under way\n[\s\S]*\n {2}admission\n[\s\S]* {4}model +sonata/,
    )

    journal.settle(ticket, call)
    await new Promise(setImmediate)
    t.match(await json('logs', 'find', call.request_id), {
      place: 'in_journal',
      journal: { settlement: { status: 'success', cost: '4900000' } },
    })
    await database.bookings.book([call])
    t.match(await json('logs', 'find', call.request_id), { place: 'booked', journal: null })
  })

  t.test('a call whose gateway died', async (t) => {
    const directory = join(root, 'gateway-1')
    const journal = await openJournal({ directory, log: silent })
    const call = settlement(accountId)
    await admit(journal, call)
    await journal.close()
    t.match(await json('logs', 'find', call.request_id), { place: 'cut_off', journal: { is_live: false } })
  })

  t.test('nothing found', async (t) => {
    for (const ref of ['req_nowhere', '999999', '0', '99999999999999999999', "x' OR 1=1"])
      t.match(await refused('logs', 'find', ref), `error: There is no call or task ${ref}: neither booked`)
  })

  function admit(journal: Journal, call: ReturnType<typeof settlement>) {
    return new Promise<ReturnType<Journal['admit']>>((resolve, reject) => {
      const ticket = journal.admit(call, (error) => (error === null ? resolve(ticket) : reject(error)))
    })
  }
})

t.test('management tokens are made and revoked', async (t) => {
  // `tollgate token …`, by the same functions as the management API, on a real PostgreSQL.
  const { database } = await openFresh(t, engines)
  const wiring = wiringOn(database, { trial_credit: '5' })
  const { json, text, refused } = commandsOn(wiring)

  t.test('a token of the installation is printed once, and ends when it is revoked', async (t) => {
    const made = await json(
      'token',
      'create',
      '--name',
      'reports',
      '--scopes',
      'keys,read',
      '--expires',
      '2999-01-01',
    )
    t.match(made, {
      name: 'reports',
      account_id: null,
      scopes: ['read', 'keys'],
      expires_at: '2999-01-01T00:00:00.000Z',
      token: /^tgm_[0-9a-f]{64}$/,
    })
    t.match(await database.managementTokens.find(hashToken(made.token)), { id: made.id, accountId: null })
    const listed = await json('token', 'list')
    t.match(listed, [{ id: made.id, revoked_at: null }])
    t.notOk('token' in listed[0])
    t.match(await text('token', 'list'), /reports +the installation/)
    t.type((await json('token', 'revoke', made.id, '--yes')).revoked_at, 'string')
    t.equal(await database.managementTokens.find(hashToken(made.token)), null)
  })

  t.test('a token of an account', async (t) => {
    const { id: account } = await json('account', 'create', '--name', 'Acme')
    const words = ['token', 'create', '--account', account, '--name', 'deploy', '--scopes', 'billing']
    const made = await json(...words)
    t.match(made, { account_id: account, scopes: ['billing'], expires_at: null })
    t.match(await text(...words), /token +tgm_/)
    t.equal((await json('token', 'list', '--account', account)).length, 2)
    t.type((await json('token', 'revoke', made.id, '--yes')).revoked_at, 'string')
  })

  t.test('what is wrong is refused', async (t) => {
    const words = ['token', 'create', '--name', 'x', '--scopes']
    for (const wrong of ['reed', 'read,', 'read,root'])
      t.equal((await command([...words, wrong], wiring)).code, 2, wrong)
    t.equal((await command([...words, 'read', '--expires', '2020-01-01'], wiring)).code, 2)
    t.match(await refused(...words, 'read', '--account', 'acc_x'), 'acc_x')
    t.match(await refused('token', 'revoke', 'mtk_x', '--yes'), 'mtk_x')
  })
})

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

t.test('tasks are listed and shown', async (t) => {
  // `tollgate task list` and `show`: the tasks of all accounts, by state and page by page.
  const { database, masterKey } = await openFresh(t, engines)
  const store = await FolderStore.open(join(engines.dataDir, 'files'), fileLinks('', linkKey(masterKey)))
  const wiring = wiringOn(database, undefined, { store: async () => store })
  const { json, refused } = commandsOn(wiring)
  const [account, other] = [await newAccount(database), await newAccount(database)]
  const oldest = await hold(database, account, 100n)
  await settle(database, oldest, 40n)
  const waiting = await hold(database, account, 100n)
  const newest = await hold(database, other, 100n)
  await settle(database, newest, 40n)

  const idsOf = async (...words: string[]): Promise<string[]> =>
    (await json('task', 'list', ...words)).map(({ id }: { id: string }) => id)

  t.test('of all accounts, of one, in several states, open ones, and page by page', async (t) => {
    t.same(await idsOf(), [newest.id, waiting.id, oldest.id])
    t.same(await idsOf('--account', account), [waiting.id, oldest.id])
    t.same(await idsOf('--state', 'waiting, succeeded', '--limit', '2'), [newest.id, waiting.id])
    t.same(await idsOf('--state', 'failed,expired'), [])
    t.same(await idsOf('--state', 'open'), [waiting.id])
    t.same(await idsOf('--before', newest.id, '--limit', '1'), [waiting.id])
    t.match(await refused('task', 'list', '--before', 'vid_x'), /no task is vid_x/)
    t.same(await idsOf('--since', '2000-01-01', '--until', '2999-01-01'), await idsOf())
    t.same(await idsOf('--since', '2999-01-01'), [])
    t.same(await idsOf('--until', '2000-01-01'), [])
    t.equal((await command(['task', 'list', '--state', 'done'], wiring)).code, 2)
  })

  t.test('one task, with its files', async (t) => {
    const shown = await json('task', 'show', oldest.id)
    t.match(shown, { id: oldest.id, state: 'succeeded', cost: '0.0000004' })
    t.same(shown.files, [])
    t.match(await refused('task', 'show', 'vid_x'), /There is no task vid_x/)
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

t.test('users are invited linked and disabled', async (t) => {
  // `tollgate user …`, by the same functions as the management API, on a real PostgreSQL.
  const { database, sql } = await openFresh(t, engines)
  const { json, text, refused } = commandsOn(wiringOn(database, { trial_credit: '5' }))
  const ACTS = [...sessionOperations, ...signInOperations]
  const browser = () => new BrowserSession(database, { ...CONFIG, signup: 'invite' } as never)
  const PASSWORD = 'a long passphrase'

  t.test('a created user signs in by a link, once; a disabled one does not', async (t) => {
    const ada = await json(
      'user',
      'create',
      '--email',
      'Ada@Example.com',
      '--name',
      'Ada',
      '--role',
      'operator',
    )
    t.match(ada, {
      email: 'ada@example.com',
      installation_role: 'operator',
      enabled: true,
      signed_in_at: null,
    })
    t.match(
      await refused('user', 'create', '--email', 'ada@example.com', '--name', 'Eve'),
      'a user with this email',
    )
    t.equal((await database.accounts.show(ada.account_id)).wallet.balance, 500_000_000n)
    const { url, minutes } = await json('user', 'link', ada.id)
    t.equal(minutes, 15)
    const [, token] = /^https:\/\/gateway\.example\/console\/sign-in#link=([\w-]{43})$/.exec(url) ?? []
    const session = browser()
    t.match(await session.run(ACTS, signInByLink, { token }), { user: { id: ada.id } })
    await t.rejects(browser().run(ACTS, signInByLink, { token }), { code: 'invalid_request' })

    t.match(await refused('user', 'disable', ada.id, '--yes'), 'last operator')
    t.match(await refused('user', 'role', ada.id, '--role', 'none'), 'last operator')
    const bob = await json('user', 'create', '--email', 'bob@example.com', '--name', 'Bob')
    await json('user', 'role', bob.id, '--role', 'operator')
    const late = await json('user', 'link', ada.id)
    t.match(await json('user', 'disable', ada.id, '--yes'), { enabled: false })
    await t.rejects(session.run(ACTS, showSession), { code: 'not_signed_in' })
    await t.rejects(browser().run(ACTS, signInByLink, { token: late.url.split('=')[1] }), {
      code: 'invalid_request',
    })
    t.match(await refused('user', 'link', ada.id), 'disabled')
    await json('user', 'enable', ada.id)
    t.match(await json('user', 'list', '--search', 'ADA'), [{ id: ada.id, enabled: true }])
    t.match(await text('user', 'list'), /bob@example\.com/)
    const acts = await sql`
    SELECT action, actor FROM audit_entries WHERE subject_id = ${ada.id} AND actor = 'operator:test' ORDER BY id`
    t.same(
      acts.map(({ action }) => action),
      ['user.create', 'link.create', 'link.create', 'user.disable', 'user.enable'],
    )
  })

  t.test('an invitation to an organization works once, for its email, and can be refused', async (t) => {
    const { account } = await database.accounts.create({ name: 'Acme', kind: 'organization', credit: 0n })
    const invite = ['user', 'invite', '--organization', account.id, '--email']
    const { url, expires_at } = await json(...invite, 'Carol@example.com', '--as', 'admin')
    const days = (Date.parse(expires_at) - Date.now()) / 86_400_000
    t.ok(days > 6.9 && days <= 7)
    const [, token] = /^https:\/\/gateway\.example\/console\/sign-up#invitation=([\w-]{43})$/.exec(url) ?? []
    t.match(await browser().run(ACTS, lookUpInvitation, { token }), {
      email: 'carol@example.com',
      account_name: 'Acme',
      role: 'admin',
    })
    const person = { name: 'Carol', password: PASSWORD }
    await t.rejects(browser().run(ACTS, signUp, { ...person, email: 'carol@example.com' }), {
      code: 'permission_denied',
    })
    const sign = { ...person, invitation: token, email: 'mallory@example.com' }
    t.same(await browser().run(ACTS, signUp, sign), { email: 'carol@example.com' }, 'for its own email')
    await t.rejects(browser().run(ACTS, signUp, sign), { code: 'invalid_request' })
    const carol = browser()
    const { session } = await carol.run(ACTS, signInByPassword, {
      email: 'carol@example.com',
      password: PASSWORD,
    })
    t.match(session?.accounts, [{ role: 'owner' }, { name: 'Acme', role: 'admin' }])

    const other = await database.accounts.create({ name: 'Other', kind: 'organization', credit: 0n })
    const toOther = async (email: string) => {
      const { url, id } = await json('user', 'invite', '--organization', other.account.id, '--email', email)
      return { id, token: url.split('=')[1] }
    }
    const former = carol.token
    await t.rejects(carol.run(ACTS, acceptInvitation, { token: (await toOther('bob@example.com')).token }), {
      code: 'permission_denied',
    })
    const accepted = await carol.run(ACTS, acceptInvitation, {
      token: (await toOther('carol@example.com')).token,
    })
    t.match(accepted.accounts[2], { name: 'Other', role: 'member' })
    t.not(carol.token, former, 'more rights, another token')
    const { id, token: revoked } = await toOther('dan@example.com')
    await json('user', 'uninvite', id, '--organization', other.account.id)
    await t.rejects(browser().run(ACTS, lookUpInvitation, { token: revoked }), { code: 'invalid_request' })
    t.equal((await json('user', 'invitations', '--organization', other.account.id)).length, 3)
    t.same(await json('user', 'invitations'), [])
  })

  t.test('who becomes an operator by an invitation is one in that session alone', async (t) => {
    const email = 'erin@example.com'
    const invite = async (...more: string[]) => {
      const { url } = await json('user', 'invite', '--email', email, ...more)
      return url.split('=')[1]
    }
    await browser().run(ACTS, signUp, { name: 'Erin', password: PASSWORD, invitation: await invite() })
    const [here, elsewhere] = [browser(), browser()]
    for (const one of [here, elsewhere]) await one.run(ACTS, signInByPassword, { email, password: PASSWORD })
    await here.run(ACTS, acceptInvitation, { token: await invite('--role', 'operator') })
    t.match(await here.run(ACTS, showSession), { user: { installation_role: 'operator' } })
    await t.rejects(elsewhere.run(ACTS, showSession))
  })

  t.test('a change of the name does not undo what another person changes meanwhile', async (t) => {
    const { id } = await json('user', 'create', '--email', 'frank@example.com', '--name', 'Frank')
    const renamed = sql.begin(async (holding) => {
      await holding`SELECT FROM users WHERE id = ${id} FOR UPDATE`
      const renaming = database.users.update(id, { name: 'Francis' })
      await until('the change waits', async () => {
        const rows =
          await sql`SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND state = 'active'`
        return rows.length > 0
      })
      await holding`UPDATE users SET enabled = false WHERE id = ${id}`
      return { renaming }
    })
    t.match(await (await renamed).renaming, { name: 'Francis', enabled: false })
  })
})

t.test('webhooks and their deliveries are managed', async (t) => {
  // `tollgate webhook …`, by the acts of the management API, on a real PostgreSQL.
  const { database } = await openFresh(t, engines)
  const wiring = wiringOn(database, { webhooks: { private_addresses: true } })
  const { json, refused, text } = commandsOn(wiring)
  const URL_OF = 'http://127.0.0.1:9/hook'
  const SECRET = /^whsec_[\w+/=]{32,}$/

  t.test('an endpoint is created, changed, rotated, and deleted', async (t) => {
    const account = await newAccount(database)
    const created = await json(
      'webhook',
      'create',
      '--account',
      account,
      '--url',
      URL_OF,
      '--events',
      'balance.low',
    )
    t.match(created, { url: URL_OF, events: ['balance.low'], enabled: true, secret: SECRET })
    t.match(await json('webhook', 'list', '--account', account), [{ id: created.id }])
    const shown = await json('webhook', 'show', created.id)
    t.notOk('secret' in shown, 'it is shown once')
    await json('webhook', 'update', created.id, '--events', 'all')
    t.match(await text('webhook', 'show', created.id), /^events +all$/m)
    t.match(await text('webhook', 'list', '--account', account), / all +true/)
    const rotated = await json('webhook', 'rotate', created.id)
    t.match(rotated, { secret: SECRET, former_secret_until: String })
    t.not(rotated.secret, created.secret)
    const update = (...words: string[]) => json('webhook', 'update', created.id, ...words)
    t.match(await update('--events', 'all', '--disable'), { events: null, enabled: false })
    t.match(await refused('webhook', 'test', created.id), /switched off/)
    t.match(await update('--enable', '--url', `${URL_OF}/2`), { enabled: true, url: `${URL_OF}/2` })
    t.match(await json('webhook', 'delete', created.id, '--yes'), { deleted: true })
    t.match(await refused('webhook', 'show', created.id), created.id)
    const acts = await database.auditRecord.list({ subjectId: created.id, limit: 20 })
    t.ok(acts.length >= 4)
    t.ok(acts.every(({ actor }) => actor === 'operator:test'))
    t.notMatch(JSON.stringify(acts.map(({ before, after }) => [before, after])), 'whsec_')
  })

  t.test('deliveries are listed, shown and sent again', async (t) => {
    const account = await newAccount(database)
    const { id } = await json('webhook', 'create', '--account', account, '--url', URL_OF)
    const test = await json('webhook', 'test', id)
    t.match(test, { endpoint_id: id, type: 'webhook.test', state: 'waiting' })
    const listed = (...words: string[]) => json('webhook', 'deliveries', '--account', account, ...words)
    t.match(await listed(), [{ id: test.id }])
    t.match(await listed('--endpoint', id, '--state', 'waiting'), [{ id: test.id }])
    t.same(await listed('--state', 'failed'), [])
    t.match(await listed('--since', '2000-01-01', '--until', '2999-01-01'), [{ id: test.id }])
    for (const never of [
      ['--since', '2999-01-01'],
      ['--until', '2000-01-01'],
    ])
      t.same(await listed(...never), [])
    t.match(JSON.parse((await json('webhook', 'delivery', test.id)).body), { type: 'webhook.test' })
    t.match(await json('webhook', 'replay', test.id), { state: 'waiting' })
    t.match(await json('webhook', 'replay-failed', id, '--since', '2026-01-01'), { replayed: 0 })
  })

  t.test('a cursor of another list is refused: it does not begin the deliveries again', async (t) => {
    const act = findImplementation<object, typeof listDeliveries>(deliveryOperations, listDeliveries)
    const input = { account_id: await newAccount(database), cursor: printCursor('dlv_x') }
    const options = { database, services: {}, caller: commandCaller('operator:test', null), now: Date.now() }
    await t.rejects(runImplementation(act, input, options), { code: 'invalid_request' })
  })

  t.test('the secret of callbacks is shown and rotated', async (t) => {
    const account = await newAccount(database)
    const { secret } = await json('webhook', 'callback-secret', account)
    t.match(secret, SECRET)
    t.equal((await json('webhook', 'callback-secret', account)).secret, secret)
    const rotated = await json('webhook', 'rotate-callback-secret', account)
    t.match(rotated.secret, SECRET)
    t.not(rotated.secret, secret)
    t.equal((await json('webhook', 'callback-secret', account)).secret, rotated.secret)
    t.match(await refused('webhook', 'callback-secret', 'acc_x'), /acc_x/)
  })

  t.test('wrong addresses, events and options are refused', async (t) => {
    const account = await newAccount(database)
    const create = ['webhook', 'create', '--account', account, '--url']
    t.match(await refused(...create, 'ftp://example.com'), /http/)
    const { refused: refusedPublic } = commandsOn(wiringOn(database, {}))
    t.match(await refusedPublic(...create, URL_OF), /public/)
    const code = async (...words: string[]) => (await command(words, wiring)).code
    t.equal(await code(...create, URL_OF, '--events', 'moon.full'), 2)
    t.equal(await code('webhook', 'update', 'whe_x', '--enable', '--disable'), 2)
    t.equal(await code('webhook', 'deliveries', '--account', account, '--state', 'odd'), 2)
    t.match(await refused(...create, URL_OF, '--events', 'channel.opened'), /channel\.opened/)
    t.same(await json('webhook', 'list', '--account', account), [])
  })
})
