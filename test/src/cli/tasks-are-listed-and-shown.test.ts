/** `tollgate task list` and `show`: the tasks of all accounts, by state and page by page. */
import { join } from 'node:path'
import t from 'tap'
import { fileLinks, linkKey } from '../../../src/core/media/file-link.ts'
import { FolderStore } from '../../../src/storage/folder-store.ts'
import { newAccount, startDatabase } from '../postgres/support.ts'
import { hold, settle } from '../postgres/tasks/support.ts'
import { command, commandsOn, wiringOn } from './support.ts'

const { database, engines, masterKey } = await startDatabase(t)
const store = await FolderStore.open(join(engines.dataDir, 'files'), fileLinks('', linkKey(masterKey)))
const wiring = wiringOn(database, undefined, { withLibrary: (work) => work({ database, store }) })
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
  t.equal((await command(['task', 'list', '--state', 'done'], wiring)).code, 2)
})

t.test('one task, with its files', async (t) => {
  const shown = await json('task', 'show', oldest.id)
  t.match(shown, { id: oldest.id, state: 'succeeded', cost: '0.0000004' })
  t.same(shown.files, [])
  t.match(await refused('task', 'show', 'vid_x'), /There is no task vid_x/)
})
