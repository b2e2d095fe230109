/**
 * NATS, PostgreSQL or the store go away in the middle of media work: it goes on or resumes, nothing is lost, submitted
 * or charged twice, and clients that ask meanwhile get a plain error.
 */
import { rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { isFinal } from '../../../../schemas/tasks/task.ts'
import { connectTo } from '../../../support/connections.ts'
import { startService, until } from '../../../support/service.ts'
import { demonstration } from '../support.ts'
import { checkBooks, givenUp, longAgo, lostSubmits, type TaskLine } from './books.ts'
import { untilTasks } from './crashes.ts'
import { type Answered, asked, type Intent, insisted, type Maker } from './intents.ts'

const NEGLECTED_AFTER_MS = 500

let made = 0
const want = (maker: Maker, simulate: string): Intent => ({ name: `intent-x${++made}`, maker, simulate })

const named = (tasks: readonly TaskLine[], { name }: Intent) => tasks.find(({ intent }) => intent === name)

const statusesOf = (answers: readonly (Answered | null)[]) => answers.map((answered) => answered?.status)

t.test('engines away', async (t) => {
  const service = await startService(t, { config: demonstration() })
  const { engines } = service
  const sql = connectTo(t, engines.databaseUrl, 2)
  const { key } = await service.newKey('1000000')
  const ask = (...intents: Intent[]) => Promise.all(intents.map((intent) => asked(service, key, intent)))
  const insist = (...intents: Intent[]) =>
    Promise.all(intents.map((intent) => insisted(service, key, intent)))
  const allEnded = () => untilTasks(sql, 'all have ended', 1, ({ state }) => isFinal(state))
  /** A wait for a message, or for a claim that could not be released, ends. */
  const hurried = async <T>(work: Promise<T>): Promise<T> => {
    const timer = setInterval(() => {
      const before = Date.now() - NEGLECTED_AFTER_MS
      // While PostgreSQL is away there is nothing to be hurried.
      Promise.all([longAgo(sql, before), givenUp(sql, before)]).catch(() => {})
    }, NEGLECTED_AFTER_MS)
    return work.finally(() => clearInterval(timer))
  }

  await t.test('without NATS tasks are made, followed and settled', async (t) => {
    const before = [want('film', 'delay=1500'), want('music', 'delay=1500')]
    t.same(statusesOf(await ask(...before)), [200, 200])
    await engines.stopEngine('nats')
    const during = [want('film', 'delay=0'), want('picture', 'delay=0')]
    t.same(statusesOf(await hurried(ask(...during))), [200, 200])
    const tasks = await hurried(allEnded())
    for (const intent of [...before, ...during]) t.match(named(tasks, intent), { state: 'succeeded' })
    const after = want('film', 'delay=3000')
    const asking = hurried(ask(after))
    await untilTasks(
      sql,
      'it is taken on',
      before.length + during.length + 1,
      ({ state }) => state !== 'waiting',
    )
    await engines.startEngine('nats')
    t.same(statusesOf(await asking), [200])
    t.match(named(await hurried(allEnded()), after), { state: 'succeeded' })
  })

  await t.test('without PostgreSQL nothing is taken on, and what was taken on is kept', async (t) => {
    const open = want('film', 'delay=300')
    t.same(statusesOf(await ask(open)), [200])
    // The upstream answers while PostgreSQL is away.
    const slow = [want('film', 'ttft=1500, delay=0'), want('music', 'ttft=1500, delay=0')]
    const asking = insist(...slow)
    await until('they are being submitted', async () => {
      const rows = await sql`SELECT 1 FROM tasks WHERE state = 'submitting'`
      return rows.length === slow.length
    })
    await engines.stopEngine('postgres')
    const refused = (await ask(want('film', 'delay=0')))[0]
    t.match(refused, { status: 503, body: { error: { code: 'service_unavailable', message: /Try again/ } } })
    await until('the upstream has answered', async () => {
      const submits = (await (await fetch(`${engines.simulatorUrl}/simulator/calls`)).json()) as {
        state: string
      }[]
      return submits.every(({ state }) => state !== 'running')
    })
    await engines.startEngine('postgres')
    t.same(statusesOf(await asking), [200, 200])
    const tasks = await hurried(allEnded())
    for (const intent of [open, ...slow]) t.match(named(tasks, intent), { state: 'succeeded' })
  })

  await t.test('PostgreSQL crashes under work', async (t) => {
    const intents = (['film', 'video', 'music', 'picture', 'speech', 'film'] as const).map((maker) =>
      want(maker, 'delay=200'),
    )
    const asking = insist(...intents)
    engines.killEngine('postgres')
    t.same(
      statusesOf(await hurried(asking)),
      intents.map(() => 200),
    )
    const tasks = await hurried(allEnded())
    for (const { name } of intents)
      t.ok(
        tasks.some(({ intent, state }) => intent === name && state === 'succeeded'),
        name,
      )
  })

  const linked = new Set<string>()
  await t.test('without a store what came in an answer fails, and links are handed on', async (t) => {
    const store = join(service.dataDir, 'files')
    await rename(store, `${store}.away`)
    await writeFile(store, 'no folder')
    const lost = want('speech', 'delay=0')
    const kept = [want('film', 'delay=0'), want('picture', 'delay=0')]
    const [speech, film, picture] = await ask(lost, ...kept)
    t.match(speech, { status: 502, body: { error: { message: 'The results could not be stored.' } } })
    t.match(film, { status: 200 })
    const tasks = await allEnded()
    t.match(named(tasks, lost), { state: 'failed', cost: 0n })
    for (const intent of kept) {
      const task = named(tasks, intent)
      t.match(task, { state: 'succeeded', keys: [null] })
      linked.add(task!.id)
    }
    const shown = await service.get(key, `/v1/videos/generations/${film!.body.id}`)
    const { video_url } = (await shown.json()) as { video_url: string }
    const [{ url }] = picture!.body.data as [{ url: string }]
    for (const link of [video_url, url])
      t.equal((await fetch(link)).status, 200, "the upstream's own link opens")
    await rm(store)
    await rename(`${store}.away`, store)
    t.same(statusesOf(await insist(lost)), [200], 'what failed is made once the store is back')
  })

  await allEnded()
  await checkBooks(t, service, sql, { linked, lost: await lostSubmits(sql, 'demo-video-film') })
})
