/** On a cluster of three servers streams have three replicas: the loss of a leader in mid-load loses no message. */
import { setTimeout as sleep } from 'node:timers/promises'
import { jetstreamManager } from '@nats-io/jetstream'
import { connect } from '@nats-io/transport-node'
import t, { type Test } from 'tap'
import { SETTLEMENT_STREAM, SETTLEMENT_SUBJECT } from '../../../schemas/events/event.ts'
import { openNats } from '../../../src/nats/nats.ts'
import { eventually, until } from '../../support/eventually.ts'
import { type NatsCluster, startNatsCluster } from '../../support/nats-cluster.ts'

const MESSAGES = 400
const BEFORE_THE_LOSS = 100
/** A cluster that has no leader by then is taken for one that will never have one. */
const BOUND_MS = 120_000
const MAX_CLUSTERS = 3
const quiet = { info() {}, warn() {}, error() {} }

async function infoOf({ url }: NatsCluster) {
  const connection = await connect({ servers: url.split(',') })
  try {
    return await (await jetstreamManager(connection)).streams.info(SETTLEMENT_STREAM)
  } finally {
    await connection.close()
  }
}

/** Returns whether every consumer of the stream has a leader: without one its servers deliver nothing. */
async function hasLedConsumers({ url }: NatsCluster): Promise<boolean> {
  const connection = await connect({ servers: url.split(',') })
  try {
    const { consumers } = await jetstreamManager(connection)
    for await (const { cluster } of consumers.list(SETTLEMENT_STREAM)) if (!cluster?.leader) return false
    return true
  } finally {
    await connection.close()
  }
}

const replicasBecome = (cluster: NatsCluster, count: number) =>
  eventually(`there are ${count} replicas`, async () => {
    const info = await infoOf(cluster).catch(() => null)
    return info?.config.num_replicas === count ? info : undefined
  })

/** Returns the leader, once all replicas have what it has. A server answers nothing while its cluster elects. */
const leaderOf = (cluster: NatsCluster) =>
  eventually(
    'there is a leader with current replicas',
    async () => {
      const info = await infoOf(cluster).catch(() => null)
      const { leader, replicas = [] } = info?.cluster ?? {}
      return replicas.length === 2 && replicas.every(({ current }) => current) ? leader : undefined
    },
    BOUND_MS,
  )

const open = ({ url }: NatsCluster, replicas?: number | null) =>
  openNats({ url, name: 'test', log: quiet, ...(replicas !== undefined && { replicas }) })

await t.test('replicas are as configured, and change on a stream that is there', async (t) => {
  const cluster = await startNatsCluster(t)
  const one = open(cluster, 1)
  await replicasBecome(cluster, 1)
  await one.close()
  const left = open(cluster)
  await left.awaitConnection(BOUND_MS)
  const three = open(cluster, null)
  t.equal((await replicasBecome(cluster, 3)).config.num_replicas, 3)
  await three.close()
  await left.close()
})

/** Returns whether another leader is elected. */
const electsAnother = (cluster: NatsCluster, former: string | undefined) =>
  eventually(
    'there is another leader',
    async () => {
      const info = await infoOf(cluster).catch(() => null)
      const leader = info?.cluster?.leader
      return leader !== undefined && leader !== former ? true : undefined
    },
    BOUND_MS,
  ).catch(() => false)

/** Kills the leader of a new cluster in mid-load. Returns false where its servers agree on none, before or after. */
async function outlivesItsLeader(t: Test): Promise<boolean> {
  // Each time a new cluster: in nats-server 2.9 a consumer can lose its leader for ever after the number of replicas of
  // its stream was raised. See docs/cluster.md, "A NATS cluster".
  const cluster = await startNatsCluster(t)
  const nats = open(cluster, null)
  t.teardown(() => nats.close())
  const received = new Set<string>()
  const stop = nats.consume((delivery) => {
    received.add(Buffer.from(delivery.data).toString())
    delivery.acknowledge()
  })
  t.teardown(stop)
  const stored = new Set<string>()
  let isOver = false
  t.teardown(() => {
    isOver = true
  })
  const publish = (id: string): Promise<void> =>
    new Promise((resolve) => {
      const send = () =>
        nats.publish(`${SETTLEMENT_SUBJECT}.test`, id, Buffer.from(id), (error) => {
          if (error !== null) return isOver ? undefined : void sleep(100).then(send)
          stored.add(id)
          resolve()
        })
      send()
    })
  for (let i = 0; i < BEFORE_THE_LOSS; i++) await publish(`m${i}`)
  const leader = await leaderOf(cluster).catch(() => null)
  if (leader === null) return false
  t.match(leader, /^n[123]$/)
  const rest = Array.from({ length: MESSAGES - BEFORE_THE_LOSS }, (_, i) =>
    publish(`m${BEFORE_THE_LOSS + i}`),
  )
  await cluster.kill(leader)
  isOver = !(await electsAnother(cluster, leader))
  if (isOver) return false
  await Promise.all(rest)
  t.equal(stored.size, MESSAGES)
  try {
    await until('every stored message is received', () => received.size === MESSAGES)
  } catch (error) {
    if (await hasLedConsumers(cluster)) throw error
    return false
  }
  return true
}

await t.test('a leader is killed in mid-load', async (t) => {
  // Rarely replicas of a new cluster stay behind, or the servers that are left elect no leader: such a cluster shows
  // nothing of our messages.
  for (let tries = 1; tries <= MAX_CLUSTERS; tries++) if (await outlivesItsLeader(t)) return
  t.fail(`no cluster of ${MAX_CLUSTERS} has kept replicas current and elected another leader`)
})
