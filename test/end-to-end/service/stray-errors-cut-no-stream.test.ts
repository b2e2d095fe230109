/** Uncaught errors, in each process of the service. */
import t from 'tap'
import { startService, testConfig, until } from '../../support/service.ts'
import { childrenOf, type Role } from '../chaos/processes.ts'

const UNCAUGHT = 'Uncaught error'

const service = await startService(t, {
  config: testConfig({ slow: { simulate: 'tokens=40,tps=20' }, fast: { simulate: 'tokens=3' } }),
  env: { NODE_OPTIONS: `--import ${new URL('./stray-error.ts', import.meta.url).href}` },
})
const { key } = await service.newKey('1000')
const only = (role: Role): number => childrenOf(service.pid(), role)[0] ?? 0
const stream = async (model: string) => {
  const messages = [{ role: 'user', content: 'Hello.' }]
  const response = await service.chat(key, { model, stream: true, messages, max_tokens: 50 })
  return { response, text: response.text() }
}
const told = (text: string) => service.output().split(text).length - 1
async function stray(pid: number, count: number): Promise<void> {
  for (let i = 0; i < count; i++) {
    const before = told(UNCAUGHT)
    process.kill(pid, 'SIGUSR2')
    // Signals that wait are one.
    await until('it is logged', () => told(UNCAUGHT) > before)
  }
}

await t.test('in the supervisor: told, and the service goes on', async (t) => {
  const before = told(UNCAUGHT)
  await stray(service.pid(), 2)
  await until('they are logged', () => told(UNCAUGHT) >= before + 2)
  t.match(service.output(), '"level":"fatal"')
  t.match(service.output(), 'stray 1')
  t.match(service.output(), '"origin":"unhandledRejection"')
  t.match(await (await stream('fast')).text, /\[DONE\]/)
})

let taken: string | null = null
await t.test('in the settler: it is replaced', async (t) => {
  const settler = only('settler')
  const { response, text } = await stream('fast')
  await stray(settler, 1)
  taken = response.headers.get('x-gateway-trace')
  t.match(await text, /\[DONE\]/)
  await until('another settles', () => {
    const now = only('settler')
    return now !== 0 && now !== settler
  })
})

await t.test('in a gateway, once: its streams end in order, and another takes its place', async (t) => {
  const gateway = only('gateway')
  const { response, text } = await stream('slow')
  await stray(gateway, 1)
  t.match(await text, /\[DONE\]/, 'the open stream is finished')
  const serves = async () => {
    const now = only('gateway')
    if (now === 0 || now === gateway) return false
    const answer = await fetch(`${service.baseUrl}/readyz`).catch(() => null)
    return answer?.status === 200
  }
  await until('another serves', serves)
  t.match(await (await stream('fast')).text, /\[DONE\]/)
  const requestId = response.headers.get('x-gateway-trace')
  const rows = await service.logs(key, (all) =>
    [requestId, taken].every((id) => all.some((row) => row.request_id === id)),
  )
  const others = rows.filter(({ status }) => status !== 'success')
  t.same(others, [], 'and all of it is booked, what the first settler had taken too')
})
