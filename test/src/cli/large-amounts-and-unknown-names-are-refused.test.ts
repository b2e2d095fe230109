import t from 'tap'
import { startDatabase } from '../postgres/support.ts'
import { command, commandsOn, noEngines, wiringOn } from './support.ts'

const { database } = await startDatabase(t)
const pricing = { unit: '1M_tokens', input: '1', output: '1' }
const config = {
  trial_credit: '50',
  wallet: { confirm_above: '1000' },
  models: [
    { id: 'sonata-large', aliases: ['sonata'], pricing },
    { id: 'sonata-small', pricing },
  ],
}
const wiring = wiringOn(database, config, { confirm: async () => null })
const { json, refused, text } = commandsOn(wiring)
const account = (await json('account', 'create', '--name', 'Acme')).id as string
const balance = async () => (await json('wallet', 'show', account)).balance

/** On a terminal whose user answers so. */
function answering(answer: boolean) {
  const asked: string[] = []
  const confirm = async (question: string) => {
    asked.push(question)
    return answer
  }
  return { asked, wiring: { ...wiring, confirm } }
}

t.test('a large change asks on a terminal, and needs --yes without one', async (t) => {
  t.equal((await json('wallet', 'topup', account, '1000')).balance, '1050', 'the limit itself is not over it')
  for (const words of [
    ['wallet', 'topup', account, '9999999999'],
    ['wallet', 'topup', account, '1000.00000001'],
    ['wallet', 'adjust', account, '1001', '--reason', 'x'],
    ['wallet', 'adjust', account, '-1001', '--reason', 'x'],
  ]) {
    const told = await refused(...words)
    t.match(
      told,
      /more than wallet\.confirm_above \(1000\).* name --yes\. Nothing was changed/,
      words.join(' '),
    )
  }
  const no = answering(false)
  const { code, stderr } = await command(['wallet', 'topup', account, '2000'], no.wiring)
  t.same({ code, stderr }, { code: 1, stderr: 'error: Nothing was changed.\n' })
  t.match(no.asked, [new RegExp(`^This would add 2000 credits to ${account}, .* \\[y/N\\] $`)])
  t.equal(await balance(), '1050')
  t.equal((await json('account', 'list')).length, 1)

  const yes = answering(true)
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
    /This would give Rich a credit of 1001, which is more than wallet\.confirm_above \(1000\).* name --yes/,
  )
  t.equal((await json('account', 'list')).length, before)
  const usual = await json('account', 'create', '--name', 'Usual', '--credit', '1000')
  t.equal(usual.wallet.balance, '1000')
  const rich = await json('account', 'create', '--name', 'Rich', '--credit', '1001', '--yes')
  t.equal(rich.wallet.balance, '1001')
})

t.test('a repeated command with a reference says so and changes nothing', async (t) => {
  const before = await balance()
  const again = await json('wallet', 'topup', account, '2000', '--yes', '--reference', 'pay 1')
  t.match(again, { balance: before, repeated: true, entry: { amount: '2000', reference: 'pay 1' } })
  t.match(
    await text('wallet', 'topup', account, '2000', '--yes', '--reference', 'pay 1'),
    /repeated +the reference was booked before; nothing was changed/,
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
      if (code !== 0) t.match(stderr, 'It is a whole number from 1 to 2147483647, or "none".')
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
    t.match(stderr, /It is past: the key would be refused at once/)
  }
  t.equal((await json('key', 'show', id)).expires_at, '2999-01-01T00:00:00.000Z')
  t.equal((await json('key', 'update', id, '--expires', 'never')).expires_at, null)
})
