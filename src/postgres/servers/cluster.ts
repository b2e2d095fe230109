/** The clusters that this process is connected to: one finder for each URL and kind of server, for all pools. */
import postgres from 'postgres'
import { openPool, type Sql } from '../pool.ts'
import type { Address, ServerUrl } from './address.ts'
import { type Probe, ServerFinder, type ServerState } from './finder.ts'
import { Sockets } from './sockets.ts'

const CONNECT_TIMEOUT_SECONDS = 2
const NAME = 'tollgate servers'

interface Cluster {
  readonly finder: ServerFinder
  readonly pools: Set<Sockets>
}

const CLUSTERS = new Map<string, Cluster>()

/** Returns the sockets for a new pool. Where the URL names no kind of server, they lead to its one host. */
export function openSockets(named: string, server: ServerUrl): Sockets {
  const { target, addresses } = server
  if (target === null) return new Sockets(async () => addresses[0]!)
  const key = makeKey(named, server)
  const cluster = CLUSTERS.get(key) ?? openCluster(server)
  CLUSTERS.set(key, cluster)
  const { finder, pools } = cluster
  const sockets = new Sockets(
    () => finder.choose(),
    (address) => finder.suspect(address),
  )
  pools.add(sockets)
  return sockets
}

/** Forgets the sockets of a pool that ends. */
export function closeSockets(named: string, server: ServerUrl, sockets: Sockets): void {
  sockets.end()
  CLUSTERS.get(makeKey(named, server))?.pools.delete(sockets)
}

const makeKey = (named: string, { target }: ServerUrl): string => `${target} ${named}`

function openCluster(server: ServerUrl): Cluster {
  const pools = new Set<Sockets>()
  const finder = new ServerFinder(
    server.addresses.map((address) => makeProbe(server, address)),
    server.target!,
    (isUsable) => {
      for (const sockets of pools) sockets.drop(isUsable)
    },
  )
  return { finder, pools }
}

/** One connection for each server. It does not keep the process alive. */
function makeProbe({ url, tls }: ServerUrl, address: Address): Probe {
  const sockets = new Sockets(async () => address)
  const open = () =>
    postgres(url, {
      max: 1,
      prepare: false,
      fetch_types: false,
      connect_timeout: CONNECT_TIMEOUT_SECONDS,
      max_lifetime: null,
      backoff: () => 0,
      onnotice: () => {},
      connection: { application_name: NAME },
      ...(tls !== null && { ssl: tls }),
      socket: async () => (await sockets.open()).unref(),
    } as Parameters<typeof postgres>[1]) as unknown as Sql
  const { sql, renew } = openPool(open)
  sockets.onDrop = renew
  return {
    address,
    async ask(): Promise<ServerState> {
      const [row] = await sql<[{ recovering: boolean; read_only: boolean; timeline: string | null }]>`
        SELECT pg_is_in_recovery() AS recovering, current_setting('transaction_read_only') = 'on' AS read_only,
          CASE WHEN NOT pg_is_in_recovery() THEN left(pg_walfile_name(pg_current_wal_lsn()), 8) END AS timeline`
      return { isRecovering: row.recovering, isReadOnly: row.read_only, timeline: row.timeline }
    },
    reset: () => sockets.drop(),
  }
}
