import type { ChildProcess } from 'node:child_process'
import { mkdir } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { EngineKind, Launch } from '../engine.ts'
import { LOOPBACK } from '../ports.ts'
import { readPassword, writePrivateFile } from '../private-file.ts'
import { endWithUs, plainEnvironment } from '../programs.ts'
import { findNatsServer, natsFolders } from './binary.ts'

const USER = 'tollgate'
const POLL_INTERVAL_MS = 15
const READY_BOUND_MS = 60_000
const SHUTDOWN_BOUND_MS = 10_000
const MAX_MEMORY_STORE_MB = 64
const MAX_FILE_STORE_MB = 4096
/** A batch of settlements is one message; the server's default of 1 MB is near to it. */
const MAX_PAYLOAD_MB = 4

/**
 * Returns the NATS server with JetStream, storing in `<dataDir>/nats`. From 2.10 every message is on disk before it is
 * acknowledged. 2.9 leaves that to the kernel for up to two minutes and has no setting for it: an acknowledged message
 * outlives a kill, not a loss of power.
 */
export function natsEngine({ dataDir }: { dataDir: string }): EngineKind {
  const folder = join(dataDir, 'nats')
  const configuration = join(folder, 'nats-server.conf')
  return {
    name: 'nats',
    stopSignals: [{ signal: 'SIGTERM', boundMs: SHUTDOWN_BOUND_MS }],
    readyBoundMs: READY_BOUND_MS,

    async prepare(port): Promise<Launch> {
      const { path, hasSyncInterval } = await findNatsServer(natsFolders(dataDir))
      await mkdir(folder, { recursive: true, mode: 0o700 })
      const text = configure({ port, folder, password: readPassword('nats', dataDir), hasSyncInterval })
      writePrivateFile(configuration, text)
      return { command: [...endWithUs('SIGTERM'), path, '-c', configuration], env: plainEnvironment() }
    },

    async answers(_child: ChildProcess, port, signal) {
      while (!(await greets(port))) await sleep(POLL_INTERVAL_MS, undefined, { signal })
    },

    url: (port) => `nats://${USER}:${readPassword('nats', dataDir)}@${LOOPBACK}:${port}`,
  }
}

function configure(options: {
  port: number
  folder: string
  password: string
  hasSyncInterval: boolean
}): string {
  return `listen: "${LOOPBACK}:${options.port}"
server_name: "tollgate"
max_payload: ${MAX_PAYLOAD_MB}MB
jetstream {
  store_dir: ${JSON.stringify(options.folder)}
  max_memory_store: ${MAX_MEMORY_STORE_MB}MB
  max_file_store: ${MAX_FILE_STORE_MB}MB
${options.hasSyncInterval ? '  sync_interval: "always"\n' : ''}}
authorization { user: "${USER}", password: "${options.password}" }
`
}

const GREETING_BOUND_MS = 1_000

/** Returns whether a server sends INFO on connect, as NATS does, which also shows whether JetStream is up. */
function greets(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host: LOOPBACK, port })
    let greeting = ''
    const done = (answer: boolean) => {
      socket.destroy()
      resolve(answer)
    }
    socket.setTimeout(GREETING_BOUND_MS, () => done(false))
    socket.once('error', () => done(false))
    socket.once('close', () => done(false))
    socket.on('data', (chunk) => {
      greeting += chunk.toString('latin1')
      if (greeting.includes('\r\n'))
        done(greeting.startsWith('INFO ') && greeting.includes('"jetstream":true'))
    })
  })
}
