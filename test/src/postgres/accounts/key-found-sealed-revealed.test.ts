import { chmodSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { newId } from '../../../../src/core/keys/ids.ts'
import { generateMasterKey } from '../../../../src/core/keys/material.ts'
import { currentMasterKey } from '../../../../src/postgres/accounts/master-key.ts'
import { openDatabase } from '../../../../src/postgres/database.ts'
import { newAccount, startDatabase } from '../support.ts'

const { database, sql, url } = await startDatabase(t)

t.test('a key is found by its hash, with account and wallet', async (t) => {
  const accountId = await newAccount(database)
  const expiresAt = new Date('2030-01-02T03:04:05.678Z')
  const { key, raw } = await database.keys.create({
    accountId,
    name: 'Laptop',
    kind: 'employee',
    allowedModels: ['sonata-large', 'with,comma "and quote"'],
    expiresAt,
    spendCap: 5_000_000_000n,
  })
  t.match(key, {
    accountId,
    name: 'Laptop',
    kind: 'employee',
    prefix: raw.slice(0, 20),
    allowedModels: ['sonata-large', 'with,comma "and quote"'],
    expiresAt,
    enabled: true,
    revokedAt: null,
    grant: {
      keyId: key.id,
      accountId,
      memberId: null,
      approvedBy: null,
      spendCap: 5_000_000_000n,
      spent: 0n,
    },
    accountLogs: false,
    opensDraft: false,
    revealable: true,
  })
  const credential = await database.keys.findCredential(database.keys.lookupHash(raw))
  const { account, wallet } = await database.accounts.show(accountId)
  t.same(credential, { key, account, wallet, agent: null, secret: null, budgets: [] })
  t.equal(await database.keys.findCredential(database.keys.lookupHash(`${raw}0`)), null)
})

t.test('no column holds a raw key, and a seal moved to another row does not open', async (t) => {
  const accountId = await newAccount(database)
  const one = await database.keys.create({ accountId, name: 'one' })
  const two = await database.keys.create({ accountId, name: 'two' })
  const rows = await sql<{ row: string; sealed_key: Buffer }[]>`
    SELECT k::text AS row, sealed_key FROM api_keys AS k`
  for (const { raw } of [one, two]) {
    const secret = raw.slice(20)
    t.notOk(rows.some(({ row, sealed_key }) => row.includes(secret) || sealed_key.includes(secret)))
    t.notOk(rows.some(({ row }) => row.includes(Buffer.from(secret).toString('hex'))))
  }
  t.equal((await database.keys.reveal(one.key.id)).raw, one.raw)
  await sql`UPDATE api_keys SET sealed_key = (
    SELECT sealed_key FROM api_keys WHERE id = ${one.key.id}) WHERE id = ${two.key.id}`
  await t.rejects(database.keys.reveal(two.key.id), { name: 'SealError' })
})

t.test('a key kept only as a hash works and cannot be revealed', async (t) => {
  const { key, raw } = await database.keys.create({ accountId: await newAccount(database), name: 'early' })
  await sql`UPDATE api_keys SET sealed_key = NULL WHERE id = ${key.id}`
  t.match(await database.keys.findCredential(database.keys.lookupHash(raw)), {
    key: { id: key.id, revealable: false },
  })
  await t.rejects(database.keys.reveal(key.id), { code: 'key_not_revealable' })
})

t.test('an update changes what it names and nothing else', async (t) => {
  const { key } = await database.keys.create({
    accountId: await newAccount(database),
    name: 'first',
    allowedModels: ['a'],
    expiresAt: new Date('2030-01-01T00:00:00Z'),
  })
  t.same(await database.keys.update(key.id, {}), key)
  t.same(await database.keys.update(key.id, { name: 'second' }), { ...key, name: 'second' })
  const open = { allowedModels: null, expiresAt: null, enabled: false, accountLogs: true }
  t.same(await database.keys.update(key.id, open), { ...key, name: 'second', ...open })
  t.same((await database.keys.update(key.id, { allowedModels: [] })).allowedModels, [])
})

t.test('only a console key may read the logs of the whole account', async (t) => {
  const accountId = await newAccount(database)
  for (const kind of ['employee', 'compute'] as const) {
    const wanted = { accountId, name: kind, kind }
    const refused = { code: 'account_logs_not_allowed' }
    await t.rejects(database.keys.create({ ...wanted, accountLogs: true }), refused)
    const { key } = await database.keys.create(wanted)
    await t.rejects(database.keys.update(key.id, { accountLogs: true, name: 'more' }), refused)
    t.same(await database.keys.show(key.id), key, 'nothing of a refused change is done')
  }
})

t.test('a spend cap is of employee and agent keys alone', async (t) => {
  const accountId = await newAccount(database)
  const refused = { code: 'not_grantable' }
  for (const kind of ['console', 'compute'] as const) {
    const wanted = { accountId, name: kind, kind }
    await t.rejects(database.keys.create({ ...wanted, spendCap: 1n }), refused)
    const { key } = await database.keys.create(wanted)
    t.equal(key.grant, null)
    await t.rejects(database.keys.update(key.id, { spendCap: 1n }), refused)
  }
  const { key } = await database.keys.create({ accountId, name: 'free', kind: 'employee' })
  t.match(key.grant, { spendCap: null, spent: 0n, version: 1n })
  t.match((await database.keys.update(key.id, { spendCap: 7n })).grant, { spendCap: 7n, version: 2n })
  t.match((await database.keys.update(key.id, { spendCap: null })).grant, { spendCap: null, version: 3n })
})

t.test('a revoked key stays revoked', async (t) => {
  const { key } = await database.keys.create({ accountId: await newAccount(database), name: 'lost' })
  const revoked = await database.keys.revoke(key.id)
  t.ok(revoked.revokedAt)
  t.same(await database.keys.revoke(key.id), revoked, 'a second time changes nothing')
  await t.rejects(database.keys.update(key.id, { enabled: true }), { code: 'key_revoked' })
})

t.test('an unknown id is said to be unknown', async (t) => {
  const missing = newId('key')
  const onKeys: (() => Promise<unknown>)[] = [
    () => database.keys.show(missing),
    () => database.keys.reveal(missing),
    () => database.keys.revoke(missing),
    () => database.keys.update(missing, { name: 'x' }),
  ]
  for (const attempt of onKeys)
    await t.rejects(attempt, { code: 'key_not_found', message: `There is no key ${missing}` })
  const onAccounts: (() => Promise<unknown>)[] = [
    () => database.keys.create({ accountId: missing, name: 'x' }),
    () => database.keys.list(missing),
    () => database.wallets.readLedger(missing, { before: null, limit: 10 }),
    () => database.accounts.show(missing),
    () => database.accounts.setEnabled(missing, false),
    () => database.accounts.setLimits(missing, {}),
    () => database.wallets.topUp(missing, 100_000_000_000n),
  ]
  for (const attempt of onAccounts) await t.rejects(attempt, { code: 'account_not_found' })
})

t.test('another master key is refused at start', async (t) => {
  await t.rejects(openDatabase({ url, masterKey: generateMasterKey() }), {
    code: 'wrong_master_key',
    message: /TOLLGATE_MASTER_KEY is not the one/,
  })
})

t.test('the master key of a data directory is made once, for its owner alone', (t) => {
  const dir = join(t.testdir(), 'data')
  const key = currentMasterKey(dir)
  const path = join(dir, 'master-key')
  t.same(currentMasterKey(dir), key)
  t.equal(statSync(path).mode & 0o777, 0o600)
  t.equal(readFileSync(path, 'utf8').trim(), key.toString('hex'))
  chmodSync(path, 0o600)
  writeFileSync(path, 'not a key')
  t.throws(() => currentMasterKey(dir), /does not hold a master key/, 'a damaged one is never replaced')
  t.end()
})
