/** On a cluster of three servers streams have three replicas: the loss of a leader in mid-load loses no message. */
import { setTimeout as sleep } from 'node:timers/promises'
import { jetstreamManager } from '@nats-io/jetstream'
import { connect } from '@nats-io/transport-node'
import t from 'tap'
import { SETTLEMENT_STREAM, SETTLEMENT_SUBJECT } from '../../../schemas/events/event.ts'
import { openNats } from '../../../src/nats/nats.ts'
import { eventually } from '../../support/eventually.ts'
import { type NatsCluster, startNatsCluster } from '../../support/nats-cluster.ts'

const MESSAGES = 400
const BEFORE_THE_LOSS = 100
const BOUND_MS = 60_000
const quiet = { info() {}, warn() {}, error() {} }

t.setTimeout(200_000)

async function infoOf({ url }: NatsCluster) {
  const connection = await connect({ servers: url.split(',') })
  try {
    return await (await jetstreamManager(connection)).streams.info(SETTLEMENT_STREAM)
  } finally {
    await connection.close()
  }
}

const replicasBecome = (cluster: NatsCluster, count: number) =>
  eventually(
    `there are ${count} replicas`,
    async () => {
      const info = await infoOf(cluster).catch(() => null)
      return info?.config.num_replicas === count ? info : undefined
    },
    BOUND_MS,
  )

/** A server answers nothing while its cluster elects. */
const leaderOf = (cluster: NatsCluster) =>
  eventually(
    'there is a leader',
    () =>
      infoOf(cluster)
        .then((info) => info.cluster?.leader)
        .catch(() => undefined),
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
  await left.connected(BOUND_MS)
  const three = open(cluster, null)
  t.equal((await replicasBecome(cluster, 3)).config.num_replicas, 3)
  await three.close()
  await left.close()
})

await t.test('a leader is killed in mid-load', async (t) => {
  // Another cluster: a consumer whose stream was given more replicas may elect no other leader in nats-server 2.9. See
  // docs/cluster.md, "A NATS cluster".
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
  const publish = (id: string): Promise<void> =>
    new Promise((resolve) => {
      const send = () =>
        nats.publish(`${SETTLEMENT_SUBJECT}.test`, id, Buffer.from(id), (error) => {
          if (error !== null) return void sleep(100).then(send)
          stored.add(id)
          resolve()
        })
      send()
    })
  for (let i = 0; i < BEFORE_THE_LOSS; i++) await publish(`m${i}`)
  const leader = await leaderOf(cluster)
  t.match(leader, /^n[123]$/)
  const rest = Array.from({ length: MESSAGES - BEFORE_THE_LOSS }, (_, i) =>
    publish(`m${BEFORE_THE_LOSS + i}`),
  )
  await cluster.kill(leader)
  await Promise.all(rest)
  t.equal(stored.size, MESSAGES)
  await eventually(
    'every stored message is received',
    () => (received.size === MESSAGES ? true : undefined),
    BOUND_MS,
  )
  t.not(await leaderOf(cluster), leader)
})
