/** The links of one request: each is checked, and each host is resolved once. */
import t from 'tap'
import { linkChecker, MAX_LINKED_HOSTS } from '../../../src/server/gateway/check-links.ts'

const OWN = 'http://127.0.0.1:8080/files/'
const store = {
  permanentLink: (key: string) => `${OWN}${key}`,
  link: async (key: string) => `${OWN}${key}?expires=1`,
}
const resolved: string[] = []
const check = linkChecker({
  store,
  resolve: async (host) => {
    resolved.push(host)
    return [{ address: host.startsWith('inner') ? '10.0.0.1' : '93.184.216.34' }]
  },
})

t.beforeEach(() => void resolved.splice(0))

t.test('one link that is not public refuses the request', async (t) => {
  await t.resolves(check([]))
  await t.resolves(check(['https://a.example/1', 'https://b.example/2']))
  for (const url of [
    'http://inner.example/',
    'http://127.0.0.1/a',
    'http://u:p@a.example/',
    'gs://bucket/a',
    'a',
  ])
    await t.rejects(check(['https://a.example/1', url]), {
      code: 'invalid_request',
      message: /cannot be fetched/,
    })
})

t.test('each host is resolved once, and only so many', async (t) => {
  await check(Array.from({ length: 1000 }, (_, index) => `https://a.example/${index}`))
  t.same(resolved, ['a.example'])
  const hosts = Array.from({ length: MAX_LINKED_HOSTS + 1 }, (_, index) => `https://a${index}.example/`)
  await t.rejects(check(hosts), { code: 'invalid_request', message: /33 hosts; at most 32/ })
  t.equal(resolved.length, 1)
})

t.test('a link of the store itself may be given back, wherever the store is', async (t) => {
  await check([store.permanentLink('images/a.png'), await store.link('images/a.png')])
  for (const url of ['http://127.0.0.1:8080/metrics', `${OWN}../metrics`])
    await t.rejects(check([url]), { message: /public address/ })
})
