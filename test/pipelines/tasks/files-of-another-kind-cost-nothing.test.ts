/** What is no picture, film or sound of the kind that was ordered is neither stored nor charged, and counts against its channel. */
import { setTimeout as pause } from 'node:timers/promises'
import t from 'tap'
import { mediaJob } from '../../../schemas/media/job.ts'
import { ONE_CREDIT } from '../../../schemas/money.ts'
import { isOfRole } from '../../../src/core/media/type.ts'
import { ChannelHealth } from '../../../src/core/routing/circuit-breaker.ts'
import { startTasks } from './support.ts'
import { FILM, PICTURE } from './upstream.ts'

t.test('kinds of files', async (t) => {
  const right = [
    ['image', 'image/avif'],
    ['cover', 'image/jpeg'],
    ['video', 'video/quicktime'],
    ['video', 'image/gif'],
    ['audio', 'audio/mpeg'],
    ['audio', 'video/mp4'],
  ] as const
  for (const [role, type] of right) t.ok(isOfRole(role, type), `${role} ${type}`)
  const wrong = [
    ['image', 'video/mp4'],
    ['cover', 'audio/mpeg'],
    ['video', 'image/png'],
    ['video', 'audio/mp4'],
    ['audio', 'image/gif'],
  ] as const
  for (const [role, type] of wrong) t.notOk(isOfRole(role, type), `${role} ${type}`)
})

t.test('tasks', async (t) => {
  const tasks = await startTasks(t)
  const { upstream, storage } = tasks
  const health = new ChannelHealth()
  const stored: string[] = []
  const watched = {
    ...storage,
    async copy(...copied: Parameters<typeof storage.copy>) {
      const object = await storage.copy(...copied)
      stored.push(copied[1])
      return object
    },
    async put(...put: Parameters<typeof storage.put>) {
      stored.push(put[0])
      return storage.put(...put)
    },
  }
  tasks.worker(t, { health, storage: watched })
  const account = await tasks.newAccount()
  const faultOf = (id: string) => health.activity().get(id)?.lastError?.message

  await t.test('a picture where a film was ordered: the task has failed and is paid back', async (t) => {
    upstream.plans.set('a still', { file: PICTURE })
    const { id } = await tasks.submit(tasks.order(account, 'reel', 'a still'))
    const task = await tasks.reached(id, 'failed', 'succeeded')
    t.match(task, {
      state: 'failed',
      errorCode: 'generation_failed',
      cost: 0n,
      result: { files: { length: 0 } },
    })
    t.match(task.errorMessage, /no video/)
    t.match(await tasks.walletOf(account), { balance: 1000n * ONE_CREDIT, held: 0n })
    t.same(stored, [])
    t.equal(upstream.paths.filter((path) => path.includes('/file/')).length, 1, 'it is fetched once')
    t.match(faultOf('reels'), /image\/png in place of a video/)
  })

  await t.test('of several pictures those that are films are left out, and not charged', async (t) => {
    upstream.plans.set('two moving', { images: [PICTURE, FILM, PICTURE] })
    const job = mediaJob.parse({ work: 'image', prompt: 'two moving', n: 3 })
    const task = await tasks.submit(tasks.order(account, 'picture', 'two moving', { job }))
    t.match(task, { state: 'succeeded', cost: 8n * ONE_CREDIT, result: { files: { length: 2 } } })
    t.equal(stored.length, 2)
    t.match(task.result?.beyond, [/video\/mp4 in place of an image, left out/])
    t.match(faultOf('pictures'), /video\/mp4 in place of an image/)
  })

  await t.test('a film where a picture was ordered: the client that waits is answered so', async (t) => {
    const before = await tasks.walletOf(account)
    upstream.plans.set('moving', { images: [FILM] })
    const task = await tasks.submit(tasks.order(account, 'picture', 'moving'))
    t.match(task, { state: 'failed', errorCode: 'generation_failed', cost: 0n })
    await pause(0)
    t.equal((await tasks.walletOf(account)).balance, before.balance)
    t.equal(stored.length, 2)
  })
})
