/** A key gets a new secret: which of its secrets work, who notes the first use, and what is recorded. */
import t from 'tap'
import { generateMasterKey } from '../../../../src/core/keys/material.ts'
import type { Database } from '../../../../src/postgres/database.ts'
import { openDatabase } from '../../../../src/postgres/database.ts'
import { newAccount, openFresh, startDatabase } from '../support.ts'

const { engines, database, sql, openAnother } = await startDatabase(t)

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

t.test('both secrets find the key; the former ends a grace after the first use of the new one', async (t) => {
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
})

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
  const made = await Promise.all(Array.from({ length: 8 }, () => database.keys.rotate(key.id, HOUR_SECONDS)))
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
  t.match(events, [{ type: 'key.revoked', data: { key_id: key.id, name: 'Laptop', key_prefix: key.prefix } }])
  t.equal(events.length, 1)
  const { key: kept } = await newKey()
  await t.rejects(
    database.inNameOf('user:one', async (writing) => {
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
