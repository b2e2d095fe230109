/** Three NATS servers as one cluster, on three addresses of this machine. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findNatsServer, INSTALLED_NATS_FOLDERS } from '../../src/embedded/nats/binary.ts'
import { freePort } from '../../src/embedded/ports.ts'
import { endWithUs, plainEnvironment } from '../../src/embedded/programs.ts'
import type { Teardown } from './engines.ts'

const HOSTS = ['127.0.0.1', '127.0.0.2', '127.0.0.3'] as const

export interface NatsCluster {
  /** Every server, with commas between. */
  readonly url: string
  /** Kills a server by the name that it has in the cluster: `n1`, `n2` or `n3`. */
  kill(name: string): Promise<void>
}

/** Starts the servers; they end with the test. */
export async function startNatsCluster(t: Teardown): Promise<NatsCluster> {
  const { path } = await findNatsServer(INSTALLED_NATS_FOLDERS)
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-nats-'))
  const [port, routePort] = [await freePort(), await freePort()]
  const routes = HOSTS.map((host) => `"nats-route://${host}:${routePort}"`).join(', ')
  const servers = new Map<string, ChildProcess>()
  for (const [index, host] of HOSTS.entries()) {
    const name = `n${index + 1}`
    const configuration = join(folder, `${name}.conf`)
    writeFileSync(
      configuration,
      `listen: "${host}:${port}"
server_name: "${name}"
jetstream { store_dir: "${join(folder, name)}", max_memory_store: 64MB, max_file_store: 4096MB }
cluster { name: "test", listen: "${host}:${routePort}", routes: [${routes}] }
`,
    )
    const [program = '', ...args] = [...endWithUs('SIGKILL'), path, '-c', configuration]
    servers.set(name, spawn(program, args, { env: plainEnvironment(), stdio: 'ignore' }))
  }
  const kill = async (name: string) => {
    const server = servers.get(name)
    if (server === undefined || server.exitCode !== null || server.signalCode !== null) return
    const gone = once(server, 'exit')
    server.kill('SIGKILL')
    await gone
  }
  t.teardown(async () => {
    await Promise.all([...servers.keys()].map(kill))
    rmSync(folder, { recursive: true, force: true })
  })
  return { url: HOSTS.map((host) => `nats://${host}:${port}`).join(), kill }
}
