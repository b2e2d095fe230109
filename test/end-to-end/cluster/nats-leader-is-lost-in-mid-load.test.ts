/**
 * Three NATS servers, and the one that leads the stream of settlements is killed while the service is called: with both
 * durabilities every call is booked once. Prints how many calls failed, and for how long.
 */
import { jetstreamManager } from '@nats-io/jetstream'
import { connect } from '@nats-io/transport-node'
import t from 'tap'
import { SETTLEMENT_STREAM } from '../../../schemas/events/event.ts'
import { startEngines } from '../../support/engines.ts'
import { eventually } from '../../support/eventually.ts'
import { startNatsCluster } from '../../support/nats-cluster.ts'
import { underLoad } from '../chaos/outage.ts'
import { CHAOS_CONFIG, seedNote, seeds } from '../chaos/plan.ts'
import { figuresOf, printFigures } from './figures.ts'

const BEFORE = 60
const AFTER = 200

const [seed = 0] = seeds()
t.comment(seedNote(seed))

for (const durability of ['local', 'cluster'])
  await t.test(`durability ${durability}`, async (t) => {
    const cluster = await startNatsCluster(t)
    const engines = await startEngines(t)
    const infoOf = async () => {
      const connection = await connect({ servers: cluster.url.split(',') })
      try {
        return await (await jetstreamManager(connection)).streams.info(SETTLEMENT_STREAM)
      } finally {
        await connection.close()
      }
    }
    const config = `settlement: { durability: ${durability} }\n${CHAOS_CONFIG}`
    const { load, more, finish } = await underLoad(t, seed, {
      engines,
      config,
      env: { NATS_URL: cluster.url },
    })
    const { cluster: group } = await eventually('the stream has three replicas', async () => {
      const info = await infoOf().catch(() => null)
      const hasAll =
        info?.config.num_replicas === 3 && info.cluster?.replicas?.every(({ current }) => current)
      return hasAll ? info : undefined
    })
    await more(BEFORE)
    const seenBefore = load.seen.length
    const leader = group?.leader ?? ''
    t.ok(cluster.servers.has(leader), `${leader} leads`)
    await cluster.kill(leader)
    await more(AFTER)
    const seen = load.seen.slice(seenBefore)
    t.comment(printFigures(figuresOf(seen)))
    if (durability === 'local') t.equal(figuresOf(seen).failed, 0, 'no call fails')
    await finish(t)
    t.not((await infoOf()).cluster?.leader, leader)
  })
