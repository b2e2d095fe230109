/** A budget of a day covers tasks of images and videos: held at the submit, settled by what was made, given back. */
import t from 'tap'
import { parseCredits, printCredits } from '../../../schemas/money.ts'
import { eventually, until } from '../../support/eventually.ts'
import { borrowService } from '../../support/lend-services.ts'
import { GENERATIONS, withQueuedImages } from './image-support.ts'
import { checkEntries, checkWallet, clientOf } from './support.ts'

const VIDEOS = '/v1/videos/generations'
const PAID_IN = '1000'
/** Of an image of the queue. */
const PRICE = '7'
const SLOW = 'queue=60000,delay=90000'

t.test('budgets of media', async (t) => {
  const service = await borrowService(t, withQueuedImages())
  const { database } = service

  /** A caller whose key has a budget for a day. */
  async function newCaller(amount: string) {
    const made = await service.newKey(PAID_IN)
    const client = clientOf(service, made)
    const { accountId } = made
    await database.budgets.put({
      accountId,
      scope: 'key',
      subjectId: made.keyId,
      amount: parseCredits(amount),
      period: 'day',
      timezone: 'UTC',
    })
    const spent = (expected: string) =>
      until(`${expected} is spent of the budget, and nothing reserved`, async () => {
        const [state] = await database.budgets.list(accountId)
        return state!.reserved === 0n && printCredits(state!.spent) === expected
      })
    const submit = async (path: string, body: object): Promise<string> => {
      const { status, body: task } = await client.post(path, body)
      if (status !== 200) throw new Error(`${status}: ${JSON.stringify(task)}`)
      return task.id as string
    }
    const image = (words: string, n = 1) => ({
      model: 'queued-image',
      prompt: `A fox [simulate: ${words}]`,
      n,
      async: true,
    })
    return { client, spent, submit, image }
  }
  const refused = {
    status: 402,
    body: { error: { code: 'quota_exceeded', message: /daily budget of this API key.*resets/ } },
  }

  await t.test('what is held counts, what was made stays, and the next one over it is refused', async (t) => {
    const { client, spent, submit, image } = await newCaller('20')
    const id = await submit(GENERATIONS, image('delay=200,queue=50', 2))
    t.match(await client.post(GENERATIONS, image('delay=200')), refused, '14 of 20 are held')
    t.match(await client.ended(`${GENERATIONS}/${id}`), { status: 'succeeded', data: { length: 2 } })
    await spent('14')
    await checkEntries(t, service, client, id, { held: '14', charged: '14' })
    t.match(await client.post(GENERATIONS, image('delay=200')), refused, '14 of 20 are spent')
    await checkWallet(t, service, client, PAID_IN, ['14'])
  })

  await t.test('a task that fails, or is cancelled, gives its part back', async (t) => {
    const { client, spent, submit, image } = await newCaller('10')
    const failing = await submit(GENERATIONS, image('delay=200,outcome=moderation'))
    t.match(await client.post(GENERATIONS, image('delay=200')), refused)
    t.match(await client.ended(`${GENERATIONS}/${failing}`), { status: 'failed' })
    await spent('0')
    const waiting = await submit(GENERATIONS, image(SLOW))
    t.match(await client.post(GENERATIONS, image('delay=200')), refused)
    t.match(await client.ask('DELETE', `${GENERATIONS}/${waiting}`), { body: { status: 'cancelled' } })
    await spent('0')
    const made = await submit(GENERATIONS, image('delay=200,queue=50'))
    await client.ended(`${GENERATIONS}/${made}`)
    await spent(PRICE)
    await checkWallet(t, service, client, PAID_IN, [PRICE])
  })

  await t.test('a video is held by its length, and charged by the seconds that were made', async (t) => {
    const { client, spent, submit } = await newCaller('50')
    const video = (duration: number, seconds: number) => ({
      model: 'demo-video',
      prompt: `A fox [simulate: delay=300,queue=50,seconds=${seconds}]`,
      duration,
    })
    t.match(await client.post(VIDEOS, video(1000, 2)), { status: 402 }, 'a longer one than the budget allows')
    const id = await submit(VIDEOS, video(6, 4.5))
    t.match(await client.ended(`${VIDEOS}/${id}`), { status: 'succeeded', duration_sec: 4.5 })
    const row = await eventually('its charge', async () => {
      const entries = await database.wallets.readLedger(client.accountId, { before: null, limit: 100 })
      const own = entries.filter(({ ref }) => ref === id)
      return own.length > 1 ? printCredits(-own.reduce((sum, { amount }) => sum + amount, 0n)) : undefined
    })
    await spent(row)
    await checkWallet(t, service, client, PAID_IN, [row])
  })
})
