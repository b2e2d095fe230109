/** Accounts, their members and keys, and the lists of them. */

import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { chmodSync, existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { parseCredits } from '../../../../schemas/money.ts'
import { rotate } from '../../../../src/cli/master-key.ts'
import { newId } from '../../../../src/core/keys/ids.ts'
import { generateMasterKey } from '../../../../src/core/keys/material.ts'
import {
  completeRotation,
  findMasterKey,
  readMasterKey,
  readNextMasterKey,
} from '../../../../src/postgres/accounts/master-key.ts'
import { type Database, openDatabase } from '../../../../src/postgres/database.ts'
import { migratedDatabase } from '../../../support/engines.ts'
import { until } from '../../../support/eventually.ts'
import { readText } from '../../../support/source-files.ts'
import { ENTRY } from '../../cli/support.ts'
import { newAccount, openFresh, sharePostgres, startDatabase } from '../support.ts'

const engines = await sharePostgres()

t.test('key found sealed revealed', async (t) => {
  const { database, sql, url } = await openFresh(t, engines)

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
    const key = readMasterKey(dir)
    const path = join(dir, 'master-key')
    t.same(readMasterKey(dir), key)
    t.equal(statSync(path).mode & 0o777, 0o600)
    t.equal(readFileSync(path, 'utf8').trim(), key.toString('hex'))
    chmodSync(path, 0o600)
    writeFileSync(path, 'not a key')
    t.throws(() => readMasterKey(dir), /does not hold a master key/, 'a damaged one is never replaced')
    t.end()
  })
})

t.test('key is rotated', async (t) => {
  // A key gets a new secret: which of its secrets work, who notes the first use, and what is recorded.
  const { database, sql, openAnother } = await openFresh(t, engines)

  const HOUR_SECONDS = 3600
  const DAY_MS = 24 * HOUR_SECONDS * 1000

  const newKey = async () => database.keys.create({ accountId: await newAccount(database), name: 'Laptop' })
  const find = (raw: string, by: Database = database) => by.keys.findCredential(by.keys.lookupHash(raw))
  /** Notes a use of a secret, as a process does with what it has read. */
  const use = async (raw: string, by: Database = database) => {
    const found = await find(raw, by)
    if (found?.secret) await by.keys.noteSecretUse(found.secret)
  }
  const endOf = async (raw: string) => (await find(raw))?.secret?.endsAt?.getTime() ?? null
  const eventsOf = (keyId: string) => sql<{ type: string; data: { [name: string]: unknown } }[]>`
  SELECT type, data FROM events WHERE subject_id = ${keyId} ORDER BY created_at, crossing`

  t.test(
    'both secrets find the key; the former ends a grace after the first use of the new one',
    async (t) => {
      const { key, raw } = await newKey()
      t.equal((await find(raw))?.secret, null)
      const rotated = await database.keys.rotate(key.id, HOUR_SECONDS)
      t.equal(rotated.key.id, key.id)
      t.not(rotated.raw, raw)
      t.equal(rotated.key.prefix, rotated.raw.slice(0, 20))
      const former = rotated.key.formerSecret!
      t.match(former, {
        prefix: raw.slice(0, 20),
        graceSeconds: HOUR_SECONDS,
        successorUsedAt: null,
        lastUsedAt: null,
      })
      t.equal(former.endsAt.getTime() - former.replacedAt.getTime(), 30 * DAY_MS, 'at most 30 days')
      t.match(await find(raw), { key: { id: key.id }, secret: { endsAt: former.endsAt } })
      t.match(await find(rotated.raw), { key: { id: key.id }, secret: { endsAt: null } })
      t.equal((await database.keys.reveal(key.id)).raw, rotated.raw, 'the newest is revealed')

      await use(raw)
      t.match((await database.keys.show(key.id)).formerSecret, { successorUsedAt: null, lastUsedAt: Date })
      await use(rotated.raw)
      const { formerSecret } = await database.keys.show(key.id)
      t.equal(formerSecret!.endsAt.getTime() - formerSecret!.successorUsedAt!.getTime(), HOUR_SECONDS * 1000)
      t.equal((await find(rotated.raw))?.secret, null, 'nothing more is to be noted')
      await sql`UPDATE former_secrets SET ends_at = now() - interval '1 second' WHERE key_id = ${key.id}`
      t.ok((await endOf(raw))! < Date.now(), 'an ended secret is known as one')
      t.equal(await find(`${raw}0`), null)
    },
  )

  t.test('the last day is not passed by a late first use', async (t) => {
    const { key, raw } = await newKey()
    const rotated = await database.keys.rotate(key.id, 7 * 24 * HOUR_SECONDS)
    const last = new Date(Date.now() + DAY_MS)
    await sql`UPDATE former_secrets SET ends_at = ${last} WHERE key_id = ${key.id}`
    await use(rotated.raw)
    t.equal(await endOf(raw), last.getTime())
  })

  t.test('of many processes that see the first use, one sets the end', async (t) => {
    const { key, raw } = await newKey()
    const rotated = await database.keys.rotate(key.id, HOUR_SECONDS)
    const others = await Promise.all([openAnother(), openAnother(), openAnother()])
    const seen = await Promise.all(others.map(async (by) => (await find(rotated.raw, by))!.secret!))
    const ends = new Set<number | null>()
    await Promise.all(
      Array.from({ length: 30 }, async (_, at) => {
        await others[at % 3]!.keys.noteSecretUse(seen[at % 3]!)
        ends.add(await endOf(raw))
      }),
    )
    t.equal(ends.size, 1)
  })

  t.test('a use that was not noted is noted by the next one', async (t) => {
    const { key, raw } = await newKey()
    const rotated = await database.keys.rotate(key.id, 0)
    const doomed = await openAnother()
    const secret = (await find(rotated.raw, doomed))!.secret!
    await doomed.close()
    await t.rejects(doomed.keys.noteSecretUse(secret), 'the process ends before it has noted it')
    t.ok((await endOf(raw))! > Date.now(), 'the former secret still works')
    await use(rotated.raw)
    t.ok((await endOf(raw))! <= Date.now() + 1000)
  })

  t.test('rotating again replaces a secret that was not used, and is refused where it was', async (t) => {
    const { key, raw } = await newKey()
    const lost = await database.keys.rotate(key.id, HOUR_SECONDS)
    const end = await endOf(raw)
    const seen = (await find(lost.raw))!.secret!
    const second = await database.keys.rotate(key.id, 2 * HOUR_SECONDS)
    t.equal(await endOf(raw), end, 'the secret that is in use works on, and its last day stays')
    t.ok((await endOf(lost.raw))! <= Date.now() + 1000, 'the one that was lost has ended')
    await database.keys.noteSecretUse(seen)
    t.equal(await endOf(raw), end, 'a process that knows the lost one as the newest sets no end')
    await use(second.raw)
    const { formerSecret } = await database.keys.show(key.id)
    t.match(formerSecret, { prefix: raw.slice(0, 20), graceSeconds: 2 * HOUR_SECONDS })
    await t.rejects(database.keys.rotate(key.id, 0), {
      code: 'rotation_open',
      message: /works until .*Z, and the present one is in use\. End the former one first/,
    })
    t.match((await database.keys.endFormerSecret(key.id)).formerSecret, { prefix: raw.slice(0, 20) })
    t.ok((await endOf(raw))! <= Date.now() + 1000)
    await database.keys.endFormerSecret(key.id)
    const third = await database.keys.rotate(key.id, 0)
    t.ok((await endOf(raw))! <= Date.now() + 1000, 'ended ones stay ended')
    t.ok((await endOf(second.raw))! > Date.now())
    t.match(await find(third.raw), { key: { id: key.id } })
    const entries = await database.auditRecord.list({ subjectId: key.id, limit: 20 })
    t.same(
      entries.map(({ action }) => action),
      ['key.rotate', 'key.end_former_secret', 'key.rotate', 'key.rotate', 'key.create'],
      'each act has one entry',
    )
    t.match(entries[3], { before: { prefix: raw.slice(0, 20) }, after: { prefix: lost.raw.slice(0, 20) } })
    t.notMatch(JSON.stringify(entries.map(({ before, after }) => [before, after])), /[0-9a-f]{32}/)
  })

  t.test('of rotations at the same time each leaves one newest secret', async (t) => {
    const { key, raw } = await newKey()
    const made = await Promise.all(
      Array.from({ length: 8 }, () => database.keys.rotate(key.id, HOUR_SECONDS)),
    )
    const now = Date.now() + 1000
    const working = await Promise.all(
      [raw, ...made.map((one) => one.raw)].map(async (one) => {
        const { secret } = (await find(one))!
        return secret!.endsAt === null || secret!.endsAt.getTime() > now
      }),
    )
    t.equal(working.filter(Boolean).length, 2, 'the one that was in use and the newest')
    t.ok(working[0])
    const { raw: revealed } = await database.keys.reveal(key.id)
    t.match(await find(revealed), { secret: { endsAt: null } })
  })

  t.test('every kind of key, and one kept as a hash, is rotated; a revoked one is not', async (t) => {
    const { database, sql, serviceUrl, masterKey } = await openFresh(t, engines)
    const accountId = await newAccount(database)
    const capped = await database.keys.create({ accountId, name: 'capped', kind: 'employee', spendCap: 500n })
    const rotated = await database.keys.rotate(capped.key.id, 0)
    t.match(
      rotated.key,
      { kind: 'employee', grant: { spendCap: 500n, spent: 0n } },
      'the cap stays with the key',
    )
    const hashing = await openDatabase({ url: serviceUrl, masterKey, keys: 'hash' })
    t.teardown(() => hashing.close())
    const hashed = await hashing.keys.rotate(capped.key.id, 0)
    t.match(hashed.key, { revealable: false })
    t.match(await find(hashed.raw, hashing), { key: { id: capped.key.id } })
    await t.rejects(hashing.keys.reveal(capped.key.id), { code: 'key_not_revealable' })
    const [row] = await sql`SELECT sealed_key FROM api_keys WHERE id = ${capped.key.id}`
    t.equal(row?.sealed_key, null)
    await database.keys.revoke(capped.key.id)
    for (const secret of [capped.raw, rotated.raw, hashed.raw])
      t.type((await find(secret, database))?.key.revokedAt, Date, 'each of its secrets finds a revoked key')
    await t.rejects(database.keys.rotate(capped.key.id, 0), { code: 'key_revoked' })
    await t.rejects(database.keys.rotate('key_none', 0), { code: 'key_not_found' })
    await t.rejects(database.keys.endFormerSecret('key_none'), { code: 'key_not_found' })
  })

  t.test('a new master key opens the newest secret, and finds the former one', async (t) => {
    const { database, url } = await openFresh(t, engines)
    const { key, raw } = await database.keys.create({ accountId: await newAccount(database), name: 'one' })
    const rotated = await database.keys.rotate(key.id, HOUR_SECONDS)
    const second = generateMasterKey()
    t.equal(await database.masterKey.rotate(second), 1)
    const next = await openDatabase({ url, masterKey: second })
    t.teardown(() => next.close())
    t.equal((await next.keys.reveal(key.id)).raw, rotated.raw)
    t.match(await find(raw, next), { key: { id: key.id }, secret: { endsAt: Date } })
    await t.rejects(database.keys.rotate(key.id, 0), { code: 'wrong_master_key' })
    t.match(await find(rotated.raw, next), { secret: { endsAt: null } }, 'and nothing was changed')
  })

  t.test('a revocation leaves one event, in its transaction', async (t) => {
    const { key } = await newKey()
    await database.keys.revoke(key.id)
    await database.keys.revoke(key.id)
    const events = await eventsOf(key.id)
    t.match(events, [
      { type: 'key.revoked', data: { key_id: key.id, name: 'Laptop', key_prefix: key.prefix } },
    ])
    t.equal(events.length, 1)
    const { key: kept } = await newKey()
    await t.rejects(
      database.transactAs('user:one', async (writing) => {
        await writing.keys.revoke(kept.id)
        throw new Error('the act fails')
      }),
      { message: 'the act fails' },
    )
    t.equal((await eventsOf(kept.id)).length, 0)
  })

  t.test('keys that expire are announced 7 days and 1 day before, once each', async (t) => {
    const accountId = await newAccount(database)
    const inDays = (days: number) => new Date(Date.now() + days * DAY_MS)
    const expiring = async (days: number, ageDays = 90) => {
      const { key } = await database.keys.create({ accountId, name: `in ${days}`, expiresAt: inDays(days) })
      await sql`UPDATE api_keys SET created_at = ${inDays(-ageDays)} WHERE id = ${key.id}`
      return key.id
    }
    const [far, week, day] = [await expiring(8), await expiring(6.9), await expiring(0.9)]
    const revoked = await expiring(0.5)
    await database.keys.revoke(revoked)
    const past = await expiring(-1)
    const young = await expiring(6, 0.1)
    await Promise.all([database.keys.recordExpiring(), database.keys.recordExpiring()])
    t.equal(await database.keys.recordExpiring(), 0, 'a second sweep finds nothing')
    const noticesOf = async (keyId: string) =>
      (await eventsOf(keyId)).filter(({ type }) => type === 'key.expiring')
    const counts = await Promise.all([far, week, day, revoked, past, young].map(noticesOf))
    t.same(
      counts.map(({ length }) => length),
      [0, 1, 1, 0, 0, 0],
    )
    t.match(counts[1]![0]!.data, { key_id: week, name: 'in 6.9', secret: 'current', ends_at: /Z$/ })
    await sql`UPDATE api_keys SET expires_at = ${inDays(0.8)} WHERE id = ${week}`
    await database.keys.recordExpiring()
    t.equal((await noticesOf(week)).length, 2, 'the second crossing')
    await database.keys.update(week, { expiresAt: inDays(0.7) })
    await database.keys.recordExpiring()
    t.equal((await noticesOf(week)).length, 3, 'another end is another crossing')
  })

  t.test('a former secret that is still in use is announced before it ends', async (t) => {
    const rotated = async (graceSeconds: number) => {
      const { key, raw } = await newKey()
      const { raw: next } = await database.keys.rotate(key.id, graceSeconds)
      return { id: key.id, raw, next }
    }
    const notices = async (id: string) => {
      await database.keys.recordExpiring()
      return (await eventsOf(id)).filter(({ type }) => type === 'key.expiring')
    }
    const used = await rotated(24 * HOUR_SECONDS)
    await use(used.next)
    await sql`UPDATE former_secrets SET last_used_at = now() + interval '1 second' WHERE key_id = ${used.id}`
    t.equal((await notices(used.id)).length, 0, 'not in the first half of its grace')
    await sql`
    UPDATE former_secrets SET successor_used_at = now() - interval '13 hours', ends_at = now() + interval '11 hours'
    WHERE key_id = ${used.id}`
    await database.keys.recordExpiring()
    const announced = await notices(used.id)
    t.equal(announced.length, 1)
    t.match(announced[0]!.data, { secret: 'former', key_prefix: used.raw.slice(0, 20) })
    const idle = await rotated(24 * HOUR_SECONDS)
    await use(idle.next)
    await sql`
    UPDATE former_secrets SET successor_used_at = now() - interval '13 hours', ends_at = now() + interval '11 hours',
      last_used_at = now() - interval '2 hours' WHERE key_id = ${idle.id}`
    t.equal((await notices(idle.id)).length, 0, 'one that is used no more ends in silence')
    const unused = await rotated(24 * HOUR_SECONDS)
    await sql`UPDATE former_secrets SET ends_at = now() + interval '23 hours' WHERE key_id = ${unused.id}`
    t.equal((await notices(unused.id)).length, 1, 'so that no new secret was used is known a day before')
  })
})

t.test('keys are listed by pages', async (t) => {
  // An account may have a million keys: lists and reports read those that they show.
  const { database, sql } = await openFresh(t, engines)
  const { account } = await database.accounts.create({ name: 'company', kind: 'organization', credit: 0n })
  const { account: member } = await database.accounts.create({ name: 'member', credit: 0n })
  const accountId = account.id
  const ids: string[] = []
  for (let at = 0; at < 5; at++) {
    const more = at === 0 ? {} : { kind: 'employee' as const, spendCap: parseCredits('100') }
    ids.push((await database.keys.create({ accountId, name: `key ${at}`, ...more })).key.id)
  }
  ids.sort()
  const listed = async (listing?: Parameters<typeof database.keys.list>[1]) =>
    (await database.keys.list(accountId, listing)).map(({ id }) => id)

  t.test('page after page', async (t) => {
    t.same(await listed(), ids)
    t.same(await listed({ limit: 2 }), ids.slice(0, 2))
    t.same(await listed({ after: ids[1]!, limit: 2 }), ids.slice(2, 4))
    t.same(await listed({ after: ids[4]!, limit: 2 }), [])
  })

  t.test('those of a member', async (t) => {
    await sql`UPDATE grants SET member_id = ${member.id} WHERE key_id = ${ids[3]!}`
    t.same(await listed({ memberId: member.id }), [ids[3]])
    t.same(await listed({ memberId: member.id, after: ids[3]! }), [])
  })

  t.test('those near their cap, and the names of some', async (t) => {
    const capped = (await database.keys.list(accountId)).filter(({ grant }) => grant !== null)
    const [near, far, revoked] = capped
    for (const [key, spent] of [
      [near, '80'],
      [far, '79'],
      [revoked, '100'],
    ] as const)
      await sql`UPDATE grants SET spent = ${parseCredits(spent)} WHERE key_id = ${key!.id}`
    await database.keys.revoke(revoked!.id)
    const found = await database.keys.listNearCap(accountId, { percent: 80n, limit: 10 })
    t.same(
      found.map(({ id }) => id),
      [near!.id],
    )
    const named = await database.keys.readNamed([ids[3]!, 'key_none'])
    t.same([...named.keys()], [ids[3]])
    t.match(named.get(ids[3]!), { name: /^key \d$/, memberId: member.id })
  })
})

t.test('lists are read by pages', async (t) => {
  // Lists of people, their requests and what opens the management API: a page reads its entries, and no others.
  const ENTRIES = 5
  const { database, sql } = await openFresh(t, engines)
  const operator = await database.users.create({ email: 'o@example.com', name: 'O', credit: 0n })
  const { account } = await database.accounts.create({ name: 'company', kind: 'organization', credit: 0n })
  const accountId = account.id
  await database.organizations.putMember(accountId, operator.accountId, 'owner')

  interface Listing {
    readonly after?: string
    readonly limit?: number
  }

  /** Checks that pages of a list are its parts. */
  async function pages(
    t: Test,
    list: (listing?: Listing) => Promise<readonly { readonly id: string }[]>,
    all: readonly string[],
  ) {
    const idsOf = async (listing?: Listing) => (await list(listing)).map(({ id }) => id)
    t.same(await idsOf(), all)
    t.same(await idsOf({ limit: 2 }), all.slice(0, 2))
    t.same(await idsOf({ after: all[1]!, limit: 2 }), all.slice(2, 4))
    t.same(await idsOf({ after: all.at(-1)! }), [])
  }

  /** Makes entries one after another, and returns their ids in order. */
  async function made(make: (at: number) => Promise<{ readonly id: string }>): Promise<string[]> {
    const ids: string[] = []
    for (let at = 0; at < ENTRIES; at++) ids.push((await make(at)).id)
    return ids.sort()
  }

  const users = new Map<string, string>()

  t.before(async () => {
    for (let at = 0; at < ENTRIES; at++) {
      const user = await database.users.create({
        email: `User${at}@example.com`,
        name: `N ${at}`,
        credit: 0n,
      })
      users.set(user.id, user.accountId)
    }
  })

  t.test('users, all or those who match', async (t) => {
    const all = [operator.id, ...users.keys()].sort()
    await pages(t, database.users.list, all)
    const found = async (search: string) => (await database.users.list({ search })).map(({ name }) => name)
    t.same(await found('uSER3@'), ['N 3'])
    t.same(await found('n 4'), ['N 4'])
    t.same(await found([...users.keys()][2]!), ['N 2'])
    t.same(await found('%'), [])
  })

  t.test('members, with what their keys spent', async (t) => {
    const accounts = [...users.values()]
    for (const member of accounts) await database.organizations.putMember(accountId, member, 'member')
    const list = async (listing?: Listing) =>
      (await database.organizations.listMembers(accountId, listing)).map((member) => ({
        id: member.accountId,
      }))
    await pages(t, list, [operator.accountId, ...accounts].sort())
    const { key } = await database.keys.create({ accountId, name: 'k', kind: 'employee', spendCap: 10n })
    await sql`UPDATE grants SET member_id = ${accounts[0]!}, spent = 7 WHERE key_id = ${key.id}`
    const [first] = (await database.organizations.listMembers(accountId)).filter(
      (one) => one.accountId === accounts[0],
    )
    t.match(first, { email: 'User0@example.com', spent: 7n, role: 'member' })
    t.same(await database.organizations.readSpend(accountId, accounts[0]!), {
      email: 'User0@example.com',
      spent: 7n,
    })
    t.equal(await database.organizations.findRole(accountId, operator.accountId), 'owner')
    t.equal(await database.organizations.findRole(accountId, accountId), null)
  })

  t.test('requests for keys, the newest first, by member and state', async (t) => {
    const [one, other] = [...users.values()] as [string, string]
    const ask = (memberId: string) => (at: number) =>
      database.keyRequests.create({ organizationId: accountId, memberId, name: `r ${at}` })
    const asked = (await made(ask(one))).reverse()
    await pages(t, (listing) => database.keyRequests.list(accountId, listing), asked)
    const more = await made(ask(other))
    await pages(t, (listing) => database.keyRequests.list(accountId, { memberId: one, ...listing }), asked)
    await database.keyRequests.deny(more[0]!, { by: operator.accountId })
    const denied = await database.keyRequests.list(accountId, { state: 'denied' })
    t.match(denied, [{ id: more[0], memberId: other }])
  })

  t.test('invitations and management tokens, the newest first', async (t) => {
    for (const to of [accountId, null]) {
      const role = to === null ? null : 'member'
      const invited = await made((at) =>
        database.invitations.create({
          tokenHash: randomBytes(32),
          email: `${at}@example.com`,
          accountId: to,
          role,
          installationRole: null,
        }),
      )
      await pages(t, (listing) => database.invitations.list(to, listing), invited.reverse())
      const tokens = await made(() =>
        database.managementTokens.create({
          tokenHash: randomBytes(32),
          prefix: 'tgm_1',
          name: 'ci',
          accountId: to,
          scopes: ['read'],
          expiresAt: null,
        }),
      )
      await pages(t, (listing) => database.managementTokens.list(to, listing), tokens.reverse())
    }
  })

  t.test('webhook endpoints, the newest first', async (t) => {
    const url = 'https://receiver.example.com/'
    const endpoints = await made(async () => {
      const wanted = { kind: 'webhook' as const, accountId, url, description: '', events: null }
      return (await database.webhooks.create(wanted)).endpoint
    })
    await pages(t, (listing) => database.webhooks.list(accountId, listing), endpoints.reverse())
  })

  t.test('budgets: of a scope, of a key, and those that cover the keys of a member', async (t) => {
    const [member, other] = [...users.values()] as [string, string]
    const keys = await made(async (at) => (await database.keys.create({ accountId, name: `b ${at}` })).key)
    const [held] = await database.keys.list(accountId, { memberId: member })
    const put = (scope: 'account' | 'member' | 'key', subjectId: string) =>
      database.budgets.put({ accountId, scope, subjectId, amount: 5n, period: 'day', timezone: 'UTC' })
    const states = [
      await put('account', accountId),
      await put('member', member),
      await put('member', other),
      await put('key', held!.id),
      await put('key', keys[0]!),
    ]
    const list = async (listing?: Parameters<typeof database.budgets.list>[1]) =>
      (await database.budgets.list(accountId, listing)).map(({ budget }) => budget)
    await pages(t, list, states.map(({ budget }) => budget.id).sort())
    const subjects = async (listing: Parameters<typeof list>[0]) =>
      (await list(listing)).map(({ subjectId }) => subjectId)
    t.same(await subjects({ scope: 'member' }), [member, other])
    t.same(await subjects({ keyId: keys[0]! }), [keys[0]])
    t.same(await subjects({ memberId: member }), [accountId, member, held!.id])
    t.same(await subjects({ memberId: member, limit: 1 }), [accountId])
  })
})

t.test('members ask and admins approve', async (t) => {
  const { database, openAnother } = await openFresh(t, engines)
  const CAP = 5_000_000_000n

  const account = async (name: string, kind: 'personal' | 'organization' = 'personal') =>
    (await database.accounts.create({ name, kind, credit: 0n })).account.id

  /** An organization with an admin and a member. */
  async function newOrganization() {
    const [organization, admin, member] = [
      await account('Acme', 'organization'),
      await account('Ann'),
      await account('Bob'),
    ]
    await database.organizations.putMember(organization, admin, 'admin')
    await database.organizations.putMember(organization, member, 'member')
    return { organization, admin, member }
  }

  const newAgent = (organization: string) =>
    database.agents.create(organization, {
      name: 'Support',
      model: 'sonata-large',
      persona: 'You are polite.',
      temperature: null,
      knowledge: [],
      web_search: false,
      image_generation: false,
    })

  t.test('members are personal accounts of an organization, each with one role', async (t) => {
    const { organization, admin, member } = await newOrganization()
    // In the order of their ids, which is by chance within a millisecond.
    const members = (await database.organizations.listMembers(organization)).toSorted((a, b) =>
      a.name < b.name ? -1 : 1,
    )
    t.match(members, [
      { accountId: admin, name: 'Ann', role: 'admin' },
      { accountId: member, name: 'Bob', role: 'member' },
    ])
    t.match(await database.organizations.putMember(organization, member, 'admin'), {
      role: 'admin',
      name: 'Bob',
    })
    t.equal((await database.organizations.listMembers(organization)).length, 2)
    await t.rejects(database.organizations.putMember(admin, member, 'member'), {
      code: 'not_an_organization',
    })
    await t.rejects(database.organizations.putMember(organization, organization, 'member'), {
      code: 'not_a_personal_account',
    })
    await t.rejects(database.organizations.putMember(organization, newId('acc'), 'member'), {
      code: 'account_not_found',
    })
    await t.rejects(database.organizations.listMembers(newId('acc')), { code: 'account_not_found' })
    await t.rejects(database.organizations.listMembers(admin), { code: 'not_an_organization' })
  })

  t.test('the last admin stays while there is somebody to decide for', async (t) => {
    const { organization, admin, member } = await newOrganization()
    const refused = { code: 'last_admin' }
    await t.rejects(database.organizations.removeMember(organization, admin), refused)
    await t.rejects(database.organizations.putMember(organization, admin, 'member'), refused)
    await database.organizations.removeMember(organization, member)
    await t.rejects(database.organizations.removeMember(organization, member), { code: 'member_not_found' })
    t.match(await database.organizations.removeMember(organization, admin), {
      accountId: admin,
      role: 'admin',
    })
    t.same(await database.organizations.listMembers(organization), [])
  })

  t.test('two admins that are removed at once: one of them stays', async (t) => {
    const { organization, admin, member } = await newOrganization()
    await database.organizations.putMember(organization, member, 'admin')
    await database.organizations.putMember(organization, await account('Cleo'), 'member')
    const other = await openAnother()
    const removals = [
      database.organizations.removeMember(organization, admin),
      other.organizations.removeMember(organization, member),
    ]
    const states = (await Promise.allSettled(removals)).map(({ status }) => status)
    t.same(states.sort(), ['fulfilled', 'rejected'])
  })

  t.test('the last owner stays, whether or not there are other members', async (t) => {
    const organization = await account('Acme', 'organization')
    const owner = await account('Ann')
    const { id: user, accountId: second } = await database.users.create({
      email: 'bob@example.com',
      name: 'Bob',
      credit: 0n,
    })
    await database.organizations.putMember(organization, owner, 'owner')
    const refused = {
      code: 'last_owner',
      message: new RegExp(`${owner} is the last owner of ${organization}`),
    }
    await t.rejects(database.organizations.removeMember(organization, owner), refused)
    for (const role of ['admin', 'billing', 'member'] as const)
      await t.rejects(database.organizations.putMember(organization, owner, role), refused)
    await database.organizations.putMember(organization, second, 'owner')
    await database.accounts.setEnabled(second, false)
    await t.rejects(
      database.organizations.removeMember(organization, owner),
      refused,
      'a disabled account decides nothing',
    )
    await database.accounts.setEnabled(second, true)
    await database.users.update(user, { enabled: false })
    await t.rejects(
      database.organizations.removeMember(organization, owner),
      refused,
      'nor does a disabled user',
    )
    await database.users.update(user, { enabled: true })
    t.match(await database.organizations.removeMember(organization, owner), {
      accountId: owner,
      role: 'owner',
    })
  })

  t.test('two owners who leave at once: one of them stays', async (t) => {
    const other = await openAnother()
    for (let round = 0; round < 8; round++) {
      const organization = await account('Acme', 'organization')
      const [one, two] = [await account('Ann'), await account('Bob')]
      for (const owner of [one, two]) await database.organizations.putMember(organization, owner, 'owner')
      const outcomes = await Promise.allSettled([
        database.organizations.removeMember(organization, one),
        round % 2 === 0
          ? other.organizations.removeMember(organization, two)
          : other.organizations.putMember(organization, two, 'member'),
      ])
      t.same(outcomes.map(({ status }) => status).sort(), ['fulfilled', 'rejected'])
      const owners = (await database.organizations.listMembers(organization)).filter(
        ({ role }) => role === 'owner',
      )
      t.equal(owners.length, 1)
    }
  })

  t.test('a request becomes an employee key with a spend cap, of the organization', async (t) => {
    const { organization, admin, member } = await newOrganization()
    const asked = await database.keyRequests.create({
      organizationId: organization,
      memberId: member,
      name: 'desk',
    })
    t.match(asked, {
      organizationId: organization,
      memberId: member,
      state: 'pending',
      agentId: null,
      keyId: null,
    })
    const refused = (by: string, code: string) =>
      t.rejects(database.keyRequests.approve({ requestId: asked.id, by, spendCap: CAP }), { code })
    await refused(member, 'not_an_admin')
    await refused(newId('acc'), 'not_an_admin')
    await database.accounts.setEnabled(admin, false)
    await refused(admin, 'not_an_admin')
    await database.accounts.setEnabled(admin, true)
    await t.rejects(database.keyRequests.deny(newId('kreq'), { by: admin }), { code: 'request_not_found' })

    const expiresAt = new Date('2040-01-01T00:00:00Z')
    const wanted = { requestId: asked.id, by: admin, spendCap: CAP, allowedModels: ['a'], expiresAt }
    const { request, key, raw } = await database.keyRequests.approve(wanted)
    t.match(request, { state: 'approved', decidedBy: admin, keyId: key.id })
    t.match(key, { accountId: organization, kind: 'employee', name: 'desk', allowedModels: ['a'], expiresAt })
    t.match(key.grant, { memberId: member, approvedBy: admin, spendCap: CAP, spent: 0n })
    t.match(await database.keys.findCredential(database.keys.lookupHash(raw)), { key: { id: key.id } })
    await refused(admin, 'request_decided')
    await t.rejects(database.keys.update(key.id, { spendCap: null }), { code: 'spend_cap_required' })
    t.match(await database.keyRequests.list(organization), [{ id: asked.id, state: 'approved' }])
    await t.rejects(
      database.keyRequests.create({ organizationId: organization, memberId: newId('acc'), name: 'x' }),
      {
        code: 'member_not_found',
      },
    )
  })

  t.test('a request that two admins decide on is decided once', async (t) => {
    const { organization, admin, member } = await newOrganization()
    const { id } = await database.keyRequests.create({
      organizationId: organization,
      memberId: member,
      name: 'desk',
    })
    const approve = (by: Database) => by.keyRequests.approve({ requestId: id, by: admin, spendCap: CAP })
    const outcomes = await Promise.allSettled([approve(database), approve(await openAnother())])
    t.same(outcomes.map(({ status }) => status).sort(), ['fulfilled', 'rejected'])
    t.equal((await database.keys.list(organization)).length, 1)
    const second = await database.keyRequests.create({
      organizationId: organization,
      memberId: member,
      name: 'lap',
    })
    t.match(await database.keyRequests.deny(second.id, { by: admin }), {
      state: 'denied',
      decidedBy: admin,
      keyId: null,
    })
  })

  t.test('an agent’s key is asked for and approved the same way', async (t) => {
    const { organization, admin, member } = await newOrganization()
    const agent = await newAgent(organization)
    const asked = { organizationId: organization, memberId: member, name: 'bot', agentId: agent.id }
    const foreign = await newAgent((await newOrganization()).organization)
    await t.rejects(database.keyRequests.create({ ...asked, agentId: foreign.id }), {
      code: 'agent_not_found',
    })
    const { id: requestId } = await database.keyRequests.create(asked)
    const { key } = await database.keyRequests.approve({ requestId, by: admin, spendCap: CAP })
    t.match(key, { kind: 'agent', agentId: agent.id, grant: { memberId: member, spendCap: CAP } })

    const late = await database.keyRequests.create(asked)
    await database.agents.setState(agent.id, 'deleted')
    await t.rejects(database.keyRequests.approve({ requestId: late.id, by: admin, spendCap: CAP }), {
      code: 'agent_deleted',
    })
    t.match(
      (await database.keyRequests.list(organization))[0],
      { id: late.id, state: 'pending' },
      'nothing is done',
    )
  })

  t.test('a member who leaves takes along keys and requests, and those of nobody else', async (t) => {
    const { organization, admin, member } = await newOrganization()
    const issue = async (memberId: string) => {
      const { id } = await database.keyRequests.create({
        organizationId: organization,
        memberId,
        name: memberId,
      })
      return (await database.keyRequests.approve({ requestId: id, by: admin, spendCap: CAP })).key.id
    }
    const [own, foreign] = [await issue(member), await issue(admin)]
    const operators = await database.keys.create({ accountId: organization, name: 'op', kind: 'employee' })
    const open = await database.keyRequests.create({
      organizationId: organization,
      memberId: member,
      name: 'more',
    })
    await database.organizations.removeMember(organization, member)
    t.ok((await database.keys.show(own)).revokedAt)
    for (const id of [foreign, operators.key.id]) t.equal((await database.keys.show(id)).revokedAt, null)
    await t.rejects(database.keyRequests.approve({ requestId: open.id, by: admin, spendCap: CAP }), {
      code: 'request_decided',
    })
    t.match((await database.keyRequests.list(organization))[0], { id: open.id, state: 'withdrawn' })
  })

  t.test('who is removed while a key is being approved has no key in the end', async (t) => {
    const other = await openAnother()
    for (let round = 0; round < 8; round++) {
      const { organization, admin, member } = await newOrganization()
      const { id } = await database.keyRequests.create({
        organizationId: organization,
        memberId: member,
        name: 'desk',
      })
      await Promise.allSettled([
        database.keyRequests.approve({ requestId: id, by: admin, spendCap: CAP }),
        other.organizations.removeMember(organization, member),
        other.keyRequests.create({ organizationId: organization, memberId: member, name: 'late' }),
      ])
      const keys = await database.keys.list(organization)
      t.same(
        keys.filter(({ revokedAt }) => revokedAt === null),
        [],
      )
      const states = (await database.keyRequests.list(organization)).map(({ state }) => state)
      t.notOk(states.includes('pending'))
    }
  })
})

t.test('an email is of one user', async (t) => {
  // An email address that several users ask for becomes that of one, and the others are refused.
  const USERS = 8
  const ROUNDS = 5
  const { database } = await openFresh(t, engines)

  t.test('an email that several users confirm at the same time', async (t) => {
    const users = await Promise.all(
      Array.from({ length: USERS }, (_, at) =>
        database.users.create({ email: `user${at}@example.com`, name: `User ${at}`, credit: 0n }),
      ),
    )
    for (let round = 0; round < ROUNDS; round++) {
      const answers = await Promise.all(
        users.map(({ id }) =>
          database.users.setEmail(id, `wanted${round}@example.com`).then(
            () => 'changed',
            (error) => error.code,
          ),
        ),
      )
      t.same(
        answers.toSorted(),
        ['changed', ...Array.from({ length: USERS - 1 }, () => 'email_taken')],
        `round ${round}`,
      )
    }
  })
})

t.test('every table of operations is audited', async (t) => {
  // * What an administrative operation writes leaves an entry of the audit record: by a trigger of the table, or by the function
  // that performs the operation. A new table is one of them, or says here why it needs none.
  /** Tables whose operations are recorded by a function, and where. A row alone does not say what was done. */
  const BY_FUNCTION: Readonly<Record<string, string>> = {
    agent_drafts: 'accounts/agent-drafts.ts',
    deliveries: 'notifications/records.ts',
    former_secrets: 'accounts/key-rotation.ts',
    jobs: 'operation/jobs.ts',
    journals: 'operation/journals.ts',
    key_storage: 'accounts/master-key.ts',
    ledger_entries: 'billing/wallets.ts',
    lost_submits: 'tasks/lost-submits.ts',
    master_keys: 'accounts/rotate-master-key.ts',
    payment_events: 'payments/refused-events.ts',
    recovery_codes: 'people/totp.ts',
    status_notes: 'operation/status-notes.ts',
    tasks: 'tasks/tasks.ts',
    wiki_pages: 'knowledge/import.ts',
  }

  /** Tables that no operation writes as its subject, by why they need no entry. */
  const EXEMPT: Readonly<Record<string, readonly string[]>> = {
    'is the record itself': ['audit_entries'],
    'calls and their bookings write it': [
      ...['usage_rows', 'usage_copy', 'settlements_refused', 'idempotency_records'],
      ...['holds', 'wallet_reservations', 'cap_reservations', 'budget_periods'],
      ...['stored_responses', 'stored_items', 'stored_conversations', 'conversation_calls'],
      ...['stored_objects'],
    ],
    'follows the pages of an import': [
      ...['wiki_staging', 'wiki_links', 'wiki_names', 'wiki_tags', 'wiki_tag_counts'],
      ...['wiki_terms', 'wiki_postings', 'wiki_page_terms'],
    ],
    'follows a payment, whose states are recorded, or what the provider reports of it': [
      ...['payment_customers', 'payment_reconciliation', 'payment_reversals', 'receipts', 'receipt_numbers'],
    ],
    'signing in, which changes no right': [
      ...['sessions', 'sign_in_attempts', 'sign_in_tickets', 'unproven_emails'],
    ],
    'is what one user keeps for their own pages': ['saved_views'],
    'the service writes it while it runs': ['channel_breakers', 'events'],
    'the audit, which is a job, writes it': ['verified', 'verified_grants', 'verified_wallets'],
    'the schema and its partitions': [
      ...['partitions', 'closing_balances', 'closing_usage', 'schema_migrations', 'schema_functions'],
    ],
  }

  const { sql } = await startDatabase(t)
  const tables = async (): Promise<string[]> => {
    const rows = await sql<{ name: string }[]>`
    SELECT relname AS name FROM pg_class
    WHERE relkind IN ('r', 'p') AND NOT relispartition AND relnamespace = 'public'::regnamespace`
    return rows.map(({ name }) => name)
  }
  const audited = new Set(
    (
      await sql<{ name: string }[]>`
      SELECT DISTINCT c.relname AS name FROM pg_trigger AS g
      JOIN pg_class AS c ON c.oid = g.tgrelid JOIN pg_proc AS p ON p.oid = g.tgfoid
      WHERE p.prosrc LIKE '%record_act(%'`
    ).map(({ name }) => name),
  )
  const excepted = new Set([...Object.keys(BY_FUNCTION), ...Object.values(EXEMPT).flat()])

  t.test('every table has a trigger of the audit record, or says why it needs none', async (t) => {
    t.ok(audited.has('api_keys') && audited.has('channel_holds'), 'triggers are found, whatever their names')
    const silent = async () => (await tables()).filter((name) => !audited.has(name) && !excepted.has(name))
    t.same(await silent(), [])
    await sql`CREATE TABLE quiet (id int)`
    t.same(await silent(), ['quiet'], 'a new table is found')
    await sql`DROP TABLE quiet`
  })

  t.test('an exemption is of a table without a trigger', async (t) => {
    const known = await tables()
    t.same(
      [...excepted].filter((name) => audited.has(name) || !known.includes(name)),
      [],
    )
  })

  for (const [table, path] of Object.entries(BY_FUNCTION))
    t.test(`${table}: ${path} records the operation in its transaction`, async (t) => {
      const text = readText(`src/postgres/${path}`)
      t.match(text, /\brecord(Operation|Credit)\((sql|transaction),/)
      t.match(text, new RegExp(`(INTO|UPDATE|FROM) ${table}\\b`))
    })
})

t.test('master key is replaced', async (t) => {
  // Replacing the master key: everything opens with the new one, and a process with the former one serves on.

  t.test('the new master key opens what the former one sealed, and finds what it hashed', async (t) => {
    const { database, url, sql } = await openFresh(t, engines)
    const accountId = await newAccount(database)
    const sealed = await database.keys.create({ accountId, name: 'sealed' })
    const hashed = await database.keys.create({ accountId, name: 'hashed' })
    await sql`UPDATE api_keys SET sealed_key = NULL WHERE id = ${hashed.key.id}`
    const seal = async () => {
      const [row] = await sql<
        [{ sealed_key: Buffer }]
      >`SELECT sealed_key FROM api_keys WHERE id = ${sealed.key.id}`
      return row.sealed_key
    }
    const before = await seal()
    const user = await database.users.create({ email: 'ada@example.com', name: 'Ada', credit: 0n })
    await database.signIn.enrolTotp(user.id, 'JBSWY3DPEHPK3PXP')
    const claim = {
      ...({ scope: 'actor:user:a', key: 'once' } as const),
      ...{ requestHash: Buffer.alloc(32, 1), requestId: 'req_1' },
    }
    const unreadable = { ...claim, key: 'of a former master key' }
    const answer = { status: 201, headers: [], body: Buffer.from('{"a":1}') }
    for (const each of [claim, unreadable]) {
      t.match(await database.idempotency.claim(each), { outcome: 'claimed' })
      await database.idempotency.store(each, answer)
    }
    const [kept] = await sql`SELECT body FROM idempotency_records WHERE key = ${claim.key}`
    t.notOk(kept!.body.includes(answer.body), 'the answer of an act is sealed')
    await sql`UPDATE idempotency_records SET body = '\\x00' WHERE key = ${unreadable.key}`
    const changes: string[] = []
    const listening = await sql.listen('tollgate_changes', (change) => changes.push(change))

    const [second, third] = [generateMasterKey(), generateMasterKey()]
    t.equal(await database.masterKey.rotate(second), 1)
    t.equal(await database.masterKey.rotate(second), null, 'a second time there is nothing to do')
    t.notSame(await seal(), before)
    const next = await openDatabase({ url, masterKey: second })
    t.teardown(() => next.close())
    t.equal(next.masterKey.replacedAt, null)
    t.equal((await next.keys.reveal(sealed.key.id)).raw, sealed.raw)
    for (const { key, raw } of [sealed, hashed])
      t.match(await next.keys.findCredential(next.keys.lookupHash(raw)), { key: { id: key.id } })
    t.equal(await next.signIn.findTotpSecret(user.id, { isConfirmed: false }), 'JBSWY3DPEHPK3PXP')
    const repeated = { outcome: 'stored', status: 201, body: answer.body }
    t.match(await next.idempotency.claim(claim), repeated, 'a repeated request gets its answer')
    t.match(await next.idempotency.claim(unreadable), { outcome: 'claimed' })
    await t.rejects(database.signIn.enrolTotp(user.id, 'JBSWY3DPEHPK3PXP'), { code: 'wrong_master_key' })
    await t.rejects(database.idempotency.store(claim, answer), { code: 'wrong_master_key' })
    t.same(next.masterKey.fileLinkKey, database.masterKey.fileLinkKey, 'links that were handed out open')
    t.same(next.masterKey.logCursorKey, database.masterKey.logCursorKey)

    t.equal(await next.masterKey.rotate(third, { endLinks: true }), 1)
    const last = await openDatabase({ url, masterKey: third })
    t.teardown(() => last.close())
    t.equal((await last.keys.reveal(sealed.key.id)).raw, sealed.raw)
    t.match(await last.keys.findCredential(last.keys.lookupHash(hashed.raw)), { key: { id: hashed.key.id } })
    t.notSame(last.masterKey.fileLinkKey, next.masterKey.fileLinkKey)
    t.notSame(last.masterKey.logCursorKey, next.masterKey.logCursorKey)
    await t.rejects(
      last.masterKey.rotate(second),
      { code: 'wrong_master_key' },
      'a former one does not come back',
    )
    const [entry] = await last.auditRecord.list({ subjectId: 'master_key', limit: 1 })
    t.match(entry, { action: 'master_key.rotate', after: { keys: 1, end_links: true } })

    const marked = await last.keys.create({ accountId, name: 'heard' })
    await until('the change', () => changes.includes(`key:${marked.key.id}`))
    t.same(changes, [`key:${marked.key.id}`], 'no gateway forgets a key for being sealed again')
    await listening.unlisten()
  })

  t.test('a process with the former key serves calls, also after a restart, and seals nothing', async (t) => {
    const { database, openAnother } = await openFresh(t, engines)
    const accountId = await newAccount(database)
    const { key, raw } = await database.keys.create({ accountId, name: 'one' })
    await database.masterKey.rotate(generateMasterKey())
    const restarted = await openAnother()
    t.type(restarted.masterKey.replacedAt, Date)
    for (const former of [database, restarted]) {
      t.match(await former.keys.findCredential(former.keys.lookupHash(raw)), { key: { id: key.id } })
      const refused = {
        code: 'wrong_master_key',
        message: /was replaced.*Start it with the new TOLLGATE_MASTER_KEY/,
      }
      await t.rejects(former.keys.reveal(key.id), refused)
      await t.rejects(former.keys.create({ accountId, name: 'two' }), refused)
      await t.rejects(former.masterKey.rotate(generateMasterKey()), refused)
    }
    t.equal((await database.keys.list(accountId)).length, 1)
  })

  t.test('a change that is killed in the middle has changed nothing, and is done by the next', async (t) => {
    const { database, url, masterKey, sql } = await openFresh(t, engines)
    const accountId = await newAccount(database)
    const { key, raw } = await database.keys.create({ accountId, name: 'one' })
    const next = generateMasterKey()
    const command = () =>
      spawn(process.execPath, [ENTRY, 'master-key', 'rotate', '--json'], {
        env: {
          PATH: process.env.PATH ?? '',
          DATABASE_URL: url,
          TOLLGATE_DATA_DIR: t.testdir(),
          TOLLGATE_MASTER_KEY: masterKey.toString('hex'),
          TOLLGATE_NEW_MASTER_KEY: next.toString('hex'),
        },
        stdio: ['ignore', 'pipe', 'inherit'],
      })
    // The audit record is written last: when it is there, everything else is done.
    await sql.begin(async (blocking) => {
      await blocking`LOCK TABLE audit_entries IN EXCLUSIVE MODE`
      const killed = command()
      await until('the waiting statement', async () => {
        // Asked in the transaction itself: the server ends one that is idle for long.
        const waiting = await blocking`
        SELECT FROM pg_locks WHERE relation = 'audit_entries'::regclass AND NOT granted
          AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`
        return waiting.length > 0
      })
      t.match(await database.keys.findCredential(database.keys.lookupHash(raw)), { key: { id: key.id } })
      killed.kill('SIGKILL')
      await once(killed, 'exit')
    })
    t.equal((await database.keys.reveal(key.id)).raw, raw)
    const again = command()
    const [output] = await once(again.stdout, 'data')
    t.match(JSON.parse(output), { rotated: true, keys: 1 })
    const later = await openDatabase({ url, masterKey: next })
    t.teardown(() => later.close())
    t.equal((await later.keys.reveal(key.id)).raw, raw)
  })

  t.test('a kept master key changes after the database, and catches up where that was cut off', async (t) => {
    const url = await migratedDatabase(engines.databaseUrl)
    const dir = join(t.testdir(), 'data')
    const first = readMasterKey(dir)
    const database = await openDatabase({ url, masterKey: first })
    t.teardown(() => database.close())
    const next = readNextMasterKey(dir)
    t.same(readNextMasterKey(dir), next, 'it is made once')
    await completeRotation(dir, url)
    t.same(findMasterKey(dir), first, 'the database has not changed yet')
    await database.masterKey.rotate(next)
    await completeRotation(dir, url)
    t.same(findMasterKey(dir), next)
    const settings = { masterKey: null, newMasterKey: null, dataDir: dir }
    const later = await openDatabase({ url, masterKey: next })
    t.teardown(() => later.close())
    t.equal(await rotate(later, settings, { endLinks: false }), 0)
    t.notSame(findMasterKey(dir), next)
    await openDatabase({ url, masterKey: findMasterKey(dir)! }).then(async (last) => {
      t.equal(last.masterKey.replacedAt, null, 'the command changes both')
      await last.close()
    })
    await t.rejects(rotate(later, { ...settings, newMasterKey: next }, { endLinks: false }), /is kept in/)
    await t.rejects(
      rotate(later, { ...settings, masterKey: next }, { endLinks: false }),
      /TOLLGATE_NEW_MASTER_KEY is required/,
    )
    t.notOk(existsSync(join(dir, 'master-key.next')))
  })

  t.test('hash: no copy of a new key is kept, and none is revealed', async (t) => {
    const { database, url, masterKey, sql } = await openFresh(t, engines)
    const accountId = await newAccount(database)
    const early = await database.keys.create({ accountId, name: 'early' })
    const hashing = await openDatabase({ url, masterKey, keys: 'hash' })
    t.teardown(() => hashing.close())
    // What is set once holds for every process.
    const late = await database.keys.create({ accountId, name: 'late' })
    t.same(await sql`SELECT id FROM api_keys WHERE sealed_key IS NOT NULL`, [{ id: early.key.id }])
    t.equal(late.key.revealable, false)
    t.match(await database.keys.findCredential(database.keys.lookupHash(late.raw)), {
      key: { id: late.key.id },
    })
    for (const { key } of [early, late]) {
      t.equal((await database.keys.show(key.id)).revealable, false)
      await t.rejects(database.keys.reveal(key.id), {
        code: 'key_not_revealable',
        message: /kept only as hashes here \(TOLLGATE_KEYS=hash\)\. Create a new key, and revoke this one/,
      })
    }
    t.equal(await database.keys.eraseSealed(), 1)
    t.equal(await database.keys.eraseSealed(), 0)
    t.same(await sql`SELECT id FROM api_keys WHERE sealed_key IS NOT NULL`, [])
    t.match(await database.keys.findCredential(database.keys.lookupHash(early.raw)), {
      key: { id: early.key.id },
    })
    const [forgotten, storage] = await database.auditRecord.list({ subjectId: 'key_storage', limit: 2 })
    t.match(forgotten, { action: 'key.forget_all', after: { keys: 1 } })
    t.match(storage, {
      action: 'key_storage.update',
      before: { hash_only: false },
      after: { hash_only: true },
    })

    const revealing = await openDatabase({ url, masterKey, keys: 'reveal' })
    t.teardown(() => revealing.close())
    const { key, raw } = await revealing.keys.create({ accountId, name: 'again' })
    t.equal((await database.keys.reveal(key.id)).raw, raw)
    await t.rejects(database.keys.reveal(early.key.id), {
      message: /is kept only as a hash\. Create a new key/,
    })
  })
})
