/** Commands that ask before they change much, and values that commands refuse. */
import t from 'tap'
import { ONE_CREDIT } from '../../../schemas/money.ts'
import { openFresh, settlement, sharePostgres } from '../postgres/support.ts'
import { command, commandsOn, noEngines, wiringOn } from './support.ts'

const engines = await sharePostgres()

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
