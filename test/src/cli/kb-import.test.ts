/** `tollgate kb`: knowledge bases from folders. */
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import t from 'tap'
import { newId } from '../../../src/core/keys/ids.ts'
import { fileLinks, linkKey } from '../../../src/core/media/file-link.ts'
import { FolderStore } from '../../../src/storage/folder-store.ts'
import { newAccount, openFresh, sharePostgres } from '../postgres/support.ts'
import { command, commandsOn, tollgate, wiringOn } from './support.ts'

const engines = await sharePostgres()

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
