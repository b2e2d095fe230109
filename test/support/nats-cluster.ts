/** Three NATS servers as one cluster, on three addresses of this machine. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findNatsServer, INSTALLED_NATS_FOLDERS } from '../../src/embedded/nats/binary.ts'
import { freePort } from '../../src/embedded/ports.ts'
import type { Teardown } from './engines.ts'
import { Program } from './program.ts'

const HOSTS = ['127.0.0.1', '127.0.0.2', '127.0.0.3'] as const

export interface NatsCluster {
  /** Every server, with commas between. */
  readonly url: string
  /** By the name that each has in the cluster: `n1`, `n2` and `n3`. */
  readonly servers: ReadonlyMap<string, Program>
  /** Where each listens, in the order of the servers. */
  readonly hosts: readonly string[]
  readonly port: number
  /** Kills a server by its name. */
  kill(name: string): Promise<void>
}

/** Starts the servers; they end with the test. Clients learn no other address than those they have. */
export async function startNatsCluster(t: Teardown): Promise<NatsCluster> {
  const { path } = await findNatsServer(INSTALLED_NATS_FOLDERS)
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-nats-'))
  const [port, routePort] = [await freePort(), await freePort()]
  const routes = HOSTS.map((host) => `"nats-route://${host}:${routePort}"`).join(', ')
  const servers = new Map<string, Program>()
  for (const [index, host] of HOSTS.entries()) {
    const name = `n${index + 1}`
    const configuration = join(folder, `${name}.conf`)
    writeFileSync(
      configuration,
      `listen: "${host}:${port}"
server_name: "${name}"
jetstream { store_dir: "${join(folder, name)}", max_memory_store: 64MB, max_file_store: 4096MB }
cluster { name: "test", listen: "${host}:${routePort}", no_advertise: true, routes: [${routes}] }
`,
    )
    const command = [path, '-c', configuration]
    servers.set(name, new Program({ name, command, host, port, outputPath: join(folder, `${name}.log`) }))
  }
  const kill = async (name: string) => servers.get(name)?.kill()
  t.teardown(async () => {
    await Promise.all([...servers.keys()].map(kill))
    rmSync(folder, { recursive: true, force: true })
  })
  await Promise.all([...servers.values()].map((server) => server.start()))
  return { url: HOSTS.map((host) => `nats://${host}:${port}`).join(), servers, hosts: HOSTS, port, kill }
}
