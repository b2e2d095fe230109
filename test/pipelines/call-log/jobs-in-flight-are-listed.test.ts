/** Unfinished asynchronous jobs, on the first page, for keys that may see them. */
import t from 'tap'
import { IN_FLIGHT_MAX_JOBS, type LogPage, logPage } from '../../../schemas/call-log/query.ts'
import { ONE_CREDIT } from '../../../schemas/money.ts'
import { newId } from '../../../src/core/keys/ids.ts'
import type { NewTask } from '../../../src/postgres/tasks/types.ts'
import { openMigrated } from '../../src/postgres/support.ts'
import { created, move, newVideo } from '../../src/postgres/tasks/support.ts'
import { callLogAt } from '../../support/connections.ts'
import { startEngines } from '../../support/engines.ts'
import { jsonOf } from '../../support/reply-to.ts'
import { logs, type Reader, reader, request } from './support.ts'

const CURSOR_KEY = Buffer.alloc(32, 7)

t.test('jobs in flight', async (t) => {
  const engines = await startEngines(t, { only: ['postgres', 'clickhouse'], withCallLog: true })
  const { database, openAnother } = await openMigrated(t, engines.databaseUrl)
  const callLog = callLogAt(t, engines.clickhouseUrl)

  const newAccount = async () => {
    const { account } = await database.accounts.create({ name: 'test', credit: 1000n * ONE_CREDIT })
    const key = async (name: string) => (await database.keys.create({ accountId: account.id, name })).key
    return { id: account.id, film: await key('film'), sound: await key('sound') }
  }
  const mine = await newAccount()
  const other = await newAccount()
  let instant = Date.parse('2026-03-10T12:00:00.000Z')
  const newTask = (more: Partial<NewTask> & { keyId: string }, accountId = mine.id) => {
    instant += 1000
    return created(database, newVideo(accountId, { submittedAt: instant, ...more }))
  }
  const film = await newTask({
    keyId: mine.film.id,
    hold: 12n * ONE_CREDIT + 1n,
    sessionId: 'a film',
  })
  const song = await newTask({
    id: newId('mus'),
    kind: 'music',
    model: 'songs',
    keyId: mine.sound.id,
  })
  await newTask({ keyId: mine.film.id, isAwaited: true })
  await newTask({ keyId: other.film.id }, other.id)
  const ended = await newTask({ keyId: mine.film.id })
  const claimed = await database.tasks.applyTransition(move(ended, 'claimed'))
  await database.tasks.applyTransition(move(claimed.task, 'failed'))

  const who = reader(mine.id, mine.film.id)
  const whole = reader(mine.id, mine.film.id, { accountLogs: true })
  const read = async (query: string, from: Reader = who, { tasks } = database) => {
    const handler = logs({ callLog, tasks, cursorKey: CURSOR_KEY })
    return logPage.parse(await jsonOf(handler(from, request(query))))
  }
  const ids = (page: LogPage) => page.in_flight?.map(({ task_id }) => task_id)

  await t.test('a job is listed with what is known of it', async (t) => {
    t.same((await read('include=in_flight')).in_flight, [
      {
        object: 'log.in_flight',
        task_id: film.id,
        request_id: film.requestId,
        key_id: mine.film.id,
        key_name: 'film',
        key_prefix: mine.film.prefix,
        model: 'motion-large',
        unit_type: 'video',
        status: 'queued',
        estimate: '12.00000001',
        submitted_at: '2026-03-10T12:00:01.000Z',
      },
    ])
    t.notOk('in_flight' in (await read('')), 'not unless it is asked for')
    t.notOk('in_flight' in (await read('include=none')))
  })

  await t.test('neither what a client waits for, nor what has ended, nor another account’s', async (t) => {
    t.same(ids(await read('scope=account&include=in_flight', whole)), [song.id, film.id], 'the newest first')
    t.same(ids(await read('include=attempts,in_flight')), [film.id], 'of this key')
    t.same(ids(await read(`scope=account&key_id=${mine.sound.id}&include=in_flight`, whole)), [song.id])
    t.same(ids(await read(`key_id=${mine.sound.id}&include=in_flight`)), [], 'no other key’s')
    await t.rejects(read('scope=account&include=in_flight'), { code: 'permission_denied' })
  })

  await t.test('the filters that an open job has narrow them; the window does not', async (t) => {
    const find = async (query: string) => ids(await read(`scope=account&include=in_flight&${query}`, whole))
    t.same(await find('model=songs'), [song.id])
    t.same(await find('model=nothing'), [])
    t.same(await find('unit_type=video,audio'), [film.id])
    t.same(await find('unit_type=chat'), [])
    t.same(await find(`ref=${song.id}`), [song.id])
    t.same(await find(`ref=${film.requestId}`), [film.id])
    t.same(await find('from=2020-01-01&to=2020-01-02'), [song.id, film.id])
    t.same(await find('session_id=a%20film'), [film.id])
    t.same(await find('status=error'), [], 'it has no status of a row yet')
    t.same(await find('error_code=upstream_error'), [])
    t.same(await find('status=&error_code='), [song.id, film.id], 'an empty value is no filter')
  })

  await t.test('while PostgreSQL is away the page is answered without them', async (t) => {
    const away = await openAnother()
    await away.close()
    const page = await read('include=in_flight', who, away)
    t.notOk('in_flight' in page, 'no list is not an empty list')
    t.same(page.data, [])
  })

  await t.test('at most a hundred', async (t) => {
    const crowd = await newAccount()
    for (let left = IN_FLIGHT_MAX_JOBS + 1; left > 0; left--)
      await newTask({ keyId: crowd.film.id }, crowd.id)
    const listed = ids(await read('include=in_flight', reader(crowd.id, crowd.film.id)))
    t.equal(listed?.length, IN_FLIGHT_MAX_JOBS)
  })
})
