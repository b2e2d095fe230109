/** Replacing the master key: everything opens with the new one, and a process with the former one serves on. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { rotate } from '../../../../src/cli/master-key.ts'
import { generateMasterKey } from '../../../../src/core/keys/material.ts'
import {
  completeRotation,
  findMasterKey,
  readMasterKey,
  readNextMasterKey,
} from '../../../../src/postgres/accounts/master-key.ts'
import { openDatabase } from '../../../../src/postgres/database.ts'
import { migratedDatabase } from '../../../support/engines.ts'
import { until } from '../../../support/eventually.ts'
import { ENTRY } from '../../cli/support.ts'
import { newAccount, openFresh, startDatabase } from '../support.ts'

const { engines } = await startDatabase(t)

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
      const waiting = await sql`
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
  t.match(storage, { action: 'key_storage.update', before: { hash_only: false }, after: { hash_only: true } })

  const revealing = await openDatabase({ url, masterKey, keys: 'reveal' })
  t.teardown(() => revealing.close())
  const { key, raw } = await revealing.keys.create({ accountId, name: 'again' })
  t.equal((await database.keys.reveal(key.id)).raw, raw)
  await t.rejects(database.keys.reveal(early.key.id), {
    message: /is kept only as a hash\. Create a new key/,
  })
})
