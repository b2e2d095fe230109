/** What a worker has under way at a time, of one endpoint, one account, one host and in all. */
import { setImmediate as turn } from 'node:timers/promises'
import t from 'tap'
import { ATTEMPTS_AT_ONCE, DeliveryWork } from '../../../pipelines/notifications/work.ts'
import type { DueDelivery } from '../../../schemas/notifications/delivery.ts'
import type { Posted } from '../../../src/fetch/guarded-post.ts'
import { eventually } from '../../support/eventually.ts'
import { silent } from './support.ts'

interface Target {
  readonly accountId: string
  readonly lane: string
  readonly url: string
}

const deliveryTo = (id: string, { accountId, lane, url }: Target): DueDelivery => ({
  id,
  lane,
  tries: 0,
  state: 'waiting',
  event: { id: `evt_${id}`, type: 'key.revoked', accountId, createdAt: new Date(), data: {} },
  accountName: null,
  endpoint: { url, enabled: true, secrets: ['whsec_AAAA'] },
  address: null,
  locale: 'en',
  mail: null,
  isUnreadable: false,
})

/** A worker whose posts hang until they are answered. */
function startWork(deliveries: ReadonlyMap<string, DueDelivery>) {
  const hanging: { readonly url: string; answer(): void }[] = []
  let most = 0
  const work = new DeliveryWork({
    database: {
      deliveries: {
        read: async (ids) => ids.map((id) => deliveries.get(id)!),
        endAttempts: async () => {},
        touch: async () => {},
      },
    },
    post: (url) =>
      new Promise<Posted>((resolve) => {
        const one = {
          url,
          answer() {
            hanging.splice(hanging.indexOf(one), 1)
            resolve({ status: 200, headers: {}, body: Buffer.alloc(0) } as unknown as Posted)
          },
        }
        hanging.push(one)
        most = Math.max(most, hanging.length)
      }),
    mayBePrivate: () => true,
    mail: null,
    onRecorded: () => {},
    log: silent,
    now: Date.now,
    random: () => 0,
    pause: () => turn(),
  })
  for (const id of deliveries.keys()) work.take(id)
  return { hanging, most: () => most }
}

const targets = (count: number, targetOf: (at: number) => Target) =>
  new Map(Array.from({ length: count }, (_, at) => [`d${at}`, deliveryTo(`d${at}`, targetOf(at))] as const))

t.test('one account has a fair share, however many endpoints it has', async (t) => {
  const busy = (at: number) => ({
    accountId: 'busy',
    lane: `busy ${at % 50}`,
    url: `https://h${at % 50}.example.com/`,
  })
  const calm = { accountId: 'calm', lane: 'calm', url: 'https://calm.example.com/' }
  const { hanging, most } = startWork(targets(500, (at) => (at === 499 ? calm : busy(at))))
  await eventually('the calm account', () => hanging.find(({ url }) => url === calm.url))
  t.equal(hanging.length, ATTEMPTS_AT_ONCE.account + 1)
  const seen = new Set<string>()
  while (hanging.length > 0) {
    for (const { url, answer } of [...hanging]) {
      seen.add(url)
      answer()
    }
    await turn()
  }
  t.equal(seen.size, 51, 'every endpoint had its turn')
  t.ok(most() <= ATTEMPTS_AT_ONCE.account + 1)
})

t.test('one host has a fair share, from all accounts together', async (t) => {
  const url = 'https://slow.example.com:8443/hook'
  const { hanging } = startWork(targets(200, (at) => ({ accountId: `a${at}`, lane: `l${at}`, url })))
  await eventually('the host is full', () => hanging.length === ATTEMPTS_AT_ONCE.host || undefined)
  for (let at = 0; at < 20; at++) await turn()
  t.equal(hanging.length, ATTEMPTS_AT_ONCE.host)
})

t.test('one endpoint has few, and all together have a bound', async (t) => {
  const one = startWork(targets(100, () => ({ accountId: 'a', lane: 'l', url: 'https://h.example.com/' })))
  await eventually('the lane is full', () => one.hanging.length === ATTEMPTS_AT_ONCE.lane || undefined)
  const all = startWork(
    targets(2 * ATTEMPTS_AT_ONCE.all, (at) => ({
      accountId: `a${at}`,
      lane: `l${at}`,
      url: `https://h${at}.example.com/`,
    })),
  )
  await eventually('the worker is full', () => all.hanging.length === ATTEMPTS_AT_ONCE.all || undefined)
  for (let at = 0; at < 20; at++) await turn()
  t.equal(all.hanging.length, ATTEMPTS_AT_ONCE.all)
  t.equal(one.hanging.length, ATTEMPTS_AT_ONCE.lane)
})
