import t from 'tap'
import { parseCredits } from '../../../../schemas/money.ts'
import { newAccount, startDatabase } from '../support.ts'

const { database } = await startDatabase(t)

t.test('an account is born with its trial credit as a ledger entry', async (t) => {
  const { account, wallet } = await database.accounts.create({
    name: 'Ada',
    kind: 'organization',
    credit: parseCredits('121.32'),
  })
  t.match(account, {
    name: 'Ada',
    kind: 'organization',
    enabled: true,
    requestsPerMinute: null,
    concurrency: null,
  })
  t.same(wallet, { accountId: account.id, balance: 12_132_000_000n, held: 0n, used: 0n, version: 1n })
  const entries = await database.wallets.readLedger(account.id, { before: null, limit: 10 })
  t.match(entries, [{ kind: 'trial', amount: 12_132_000_000n, ref: null, note: null }])
  t.same(await database.accounts.show(account.id), { account, wallet })
})

t.test('no trial credit, no entry; a negative one is refused', async (t) => {
  const account = await newAccount(database, 0n)
  t.same(await database.wallets.readLedger(account, { before: null, limit: 10 }), [])
  await t.rejects(database.accounts.create({ name: 'x', credit: -1n }), { code: 'invalid_amount' })
})

t.test('a top-up under 404.4 is refused and changes nothing', async (t) => {
  const account = await newAccount(database, 1n)
  for (const amount of ['404.39999999', '0', '-500'])
    await t.rejects(database.wallets.topUp(account, parseCredits(amount)), {
      code: 'top_up_too_small',
      message: `A top-up is at least 404.4 credits, not ${amount}`,
    })
  t.equal((await database.wallets.readLedger(account, { before: null, limit: 10 })).length, 1)
  const { entry, wallet } = await database.wallets.topUp(account, parseCredits('404.4'), { note: 'by card' })
  t.match(entry, { kind: 'topup', amount: 40_440_000_000n, note: 'by card', ref: null })
  t.match(wallet, { balance: 40_540_000_000n, version: 2n })
})

t.test('the ledger is listed newest first, as many as asked', async (t) => {
  const account = await newAccount(database)
  for (const note of ['a', 'b', 'c']) await database.wallets.topUp(account, parseCredits('500'), { note })
  const notes = (await database.wallets.readLedger(account, { before: null, limit: 2 })).map(
    ({ note }) => note,
  )
  t.same(notes, ['c', 'b'])
})

t.test('limits are set one by one and taken away', async (t) => {
  const account = await newAccount(database)
  await database.accounts.setLimits(account, { requestsPerMinute: 60 })
  const both = await database.accounts.setLimits(account, { concurrency: 4 })
  t.match(both.account, { requestsPerMinute: 60, concurrency: 4 })
  const one = await database.accounts.setLimits(account, { requestsPerMinute: null })
  t.match(one.account, { requestsPerMinute: null, concurrency: 4 })
  t.same(await database.accounts.setLimits(account, {}), one)
  t.equal((await database.accounts.setEnabled(account, false)).account.enabled, false)
  t.ok(
    (await database.accounts.list()).some(({ account: listed }) => listed.id === account && !listed.enabled),
  )
})
