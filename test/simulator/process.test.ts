import { type ChildProcess, fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { startSimulator } from '../../simulator/server.ts'
import { call, chatBody } from './support.ts'

const MAIN = fileURLToPath(new URL('../../simulator/main.ts', import.meta.url))

async function readyUrl(child: ChildProcess): Promise<string> {
  let line = ''
  while (!line.includes('\n')) line += String((await once(child.stdout as NodeJS.ReadableStream, 'data'))[0])
  const ready = JSON.parse(line) as { ready: boolean; url: string }
  if (!ready.ready) throw new Error(line)
  return ready.url
}

function spawned(t: { teardown(task: () => unknown): void }, ...args: string[]): ChildProcess {
  const child = spawn(process.execPath, [MAIN, ...args], { stdio: ['pipe', 'pipe', 'pipe'] })
  t.teardown(() => child.kill('SIGKILL'))
  return child
}

t.test('it says where it listens, serves, and ends when its input closes, streams or not', async (t) => {
  const child = spawned(t, '--port', '0')
  const exited = once(child, 'exit')
  const url = await readyUrl(child)
  t.match(url, /^http:\/\/127\.0\.0\.1:\d+$/)
  t.equal((await call(url, chatBody('sim', { stream: true }))).complete, true)
  const stream = call(url, chatBody('sim@ttft=600000'))
  child.stdin?.end()
  t.same(await exited, [0, null])
  t.equal((await stream).status, 0)
})

t.test('it ends on SIGTERM and on SIGINT', async (t) => {
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    const child = spawned(t)
    const exited = once(child, 'exit')
    await readyUrl(child)
    child.kill(signal)
    t.same(await exited, [0, null])
  }
})

t.test('a fork ends with its channel, whatever its input is', async (t) => {
  const child = fork(MAIN, ['--port', '0'], { stdio: ['ignore', 'pipe', 'inherit', 'ipc'] })
  t.teardown(() => child.kill('SIGKILL'))
  const exited = once(child, 'exit')
  const url = await readyUrl(child)
  t.equal((await call(url, chatBody('sim'))).status, 200)
  child.disconnect()
  t.same(await exited, [0, null])
})

t.test('a wrong argument and a taken port are reported, with their exit codes', async (t) => {
  const { url, close } = await startSimulator({ host: '127.0.0.1', port: 0 })
  t.teardown(close)
  const endOf = async (...args: string[]) => {
    const child = spawned(t, ...args)
    const exited = once(child, 'exit')
    const told = once(child.stderr as NodeJS.ReadableStream, 'data')
    return { code: (await exited)[0] as number, told: String((await told)[0]) }
  }
  t.match(await endOf('--port', 'many'), { code: 2, told: /many/ })
  t.match(await endOf('--speed', '1'), { code: 2, told: /--speed/ })
  t.match(await endOf('--port', new URL(url).port), { code: 1, told: /EADDRINUSE/ })
})
