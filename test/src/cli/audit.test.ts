/** The audit record of what commands change. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir, userInfo } from 'node:os'
import { join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import t from 'tap'
import { recordOperation } from '../../../src/postgres/accounts/audit-record.ts'
import { openDatabase } from '../../../src/postgres/database.ts'
import { openFresh, sharePostgres } from '../postgres/support.ts'
import { type Entry, ids, listAuditedCommands, words } from './audited-operations.ts'
import { command, commandsOn, wiringOn } from './support.ts'

const engines = await sharePostgres()

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
