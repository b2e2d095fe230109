/** Messages through NATS: credentials, streams, notifications and tasks. */

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { jetstreamManager } from '@nats-io/jetstream'
import { connect, nkeys } from '@nats-io/transport-node'
import t, { type Test } from 'tap'
import {
  SETTLEMENT_CONSUMER,
  SETTLEMENT_STREAM,
  SETTLEMENT_SUBJECT,
  TASK_SUBJECT,
} from '../../../schemas/events/event.ts'
import { findNatsServer, INSTALLED_NATS_FOLDERS } from '../../../src/embedded/nats/binary.ts'
import { freePort } from '../../../src/embedded/ports.ts'
import { endWithUs, plainEnvironment } from '../../../src/embedded/programs.ts'
import { Connection } from '../../../src/nats/connection.ts'
import { type Delivery, type Nats, openNats } from '../../../src/nats/nats.ts'
import { startEngines } from '../../support/engines.ts'
import { eventually, until } from '../../support/eventually.ts'
import { type NatsCluster, startNatsCluster } from '../../support/nats-cluster.ts'

t.test('credentials open the connection', async (t) => {
  // A connection is opened with the seed of an nkey or a JWT in a file, and not without it or with another.
  type KeyPair = ReturnType<typeof nkeys.createUser>

  const folder = mkdtempSync(join(tmpdir(), 'tollgate-nats-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  const [user, stranger] = [nkeys.createUser(), nkeys.createUser()]
  const port = await freePort()
  const fileOf = (name: string, content: string | Uint8Array): string => {
    const path = join(folder, name)
    writeFileSync(path, content, { mode: 0o600 })
    return path
  }
  const { path } = await findNatsServer(INSTALLED_NATS_FOLDERS)
  /** Starts a server at this port, which ends with the test. */
  function serve(port: number, authorization: string): void {
    const configuration = fileOf(`nats-${port}.conf`, `listen: "127.0.0.1:${port}"\n${authorization}\n`)
    const [program = '', ...args] = [...endWithUs('SIGKILL'), path, '-c', configuration]
    const server = spawn(program, args, { env: plainEnvironment(), stdio: 'ignore' })
    t.teardown(async () => {
      const gone = once(server, 'exit')
      server.kill('SIGKILL')
      await gone
    })
  }
  serve(port, `authorization { users: [{ nkey: "${user.getPublicKey()}" }] }`)

  const open = (query: string, at = port): Connection => {
    const quiet = { info() {}, warn() {}, error() {} }
    const connection = new Connection(`nats://127.0.0.1:${at}${query}`, 'test', quiet)
    t.teardown(() => connection.close())
    return connection
  }
  const isRefused = (connection: Connection) =>
    eventually('it is refused', () => {
      const { isConnected, lastError } = connection.health()
      return !isConnected && /authorization/i.test(lastError ?? '') ? true : undefined
    })

  t.test('the seed of an nkey', async (t) => {
    const seed = fileOf('user.nk', user.getSeed())
    const right = open(`?credentials=${seed}`)
    await until('it is connected', () => right.health().isConnected)
    t.ok(await isRefused(open('')))
    t.ok(await isRefused(open(`?credentials=${fileOf('stranger.nk', stranger.getSeed())}`)))
    const late = open(`?credentials=${join(folder, 'late.nk')}`)
    await until('a missing file is named', () => /late\.nk/.test(late.health().lastError ?? ''))
    fileOf('late.nk', `${Buffer.from(user.getSeed()).toString()}\n`)
    await until('it is connected', () => late.health().isConnected)
  })

  /** A JWT as NATS has them: `about` is the public key of whom it names, signed by the one who answers for that. */
  function jwt(about: string, nats: object, signer: KeyPair, expiresAt?: number): string {
    const part = (content: object) => Buffer.from(JSON.stringify(content)).toString('base64url')
    const claims = {
      jti: about,
      iat: Math.floor(Date.now() / 1000) - 60,
      iss: signer.getPublicKey(),
      name: 'test',
      sub: about,
      ...(expiresAt !== undefined && { exp: expiresAt }),
      nats: { version: 2, ...nats },
    }
    const text = `${part({ typ: 'JWT', alg: 'ed25519-nkey' })}.${part(claims)}`
    return `${text}.${Buffer.from(signer.sign(Buffer.from(text))).toString('base64url')}`
  }

  const credsOf = (token: string, holder: KeyPair): string =>
    ['USER JWT', 'USER NKEY SEED']
      .map((title, index) => {
        const content = index === 0 ? token : Buffer.from(holder.getSeed()).toString()
        return `-----BEGIN ${index === 0 ? 'NATS ' : ''}${title}-----\n${content}\n------END ${index === 0 ? 'NATS ' : ''}${title}------\n`
      })
      .join('\n')

  t.test('a .creds file with the JWT of a user', async (t) => {
    const [operator, account, otherAccount] = [
      nkeys.createOperator(),
      nkeys.createAccount(),
      nkeys.createAccount(),
    ]
    const unlimited = {
      subs: -1,
      data: -1,
      payload: -1,
      imports: -1,
      exports: -1,
      wildcards: true,
      conn: -1,
      leaf: -1,
    }
    const accountJwt = jwt(account.getPublicKey(), { type: 'account', limits: unlimited }, operator)
    const at = await freePort()
    const operatorJwt = jwt(operator.getPublicKey(), { type: 'operator' }, operator)
    serve(
      at,
      `operator = "${operatorJwt}"
resolver: MEMORY
resolver_preload { ${account.getPublicKey()}: "${accountJwt}" }`,
    )
    const userJwt = (signer: KeyPair, expiresAt?: number) =>
      jwt(user.getPublicKey(), { type: 'user', subs: -1, data: -1, payload: -1 }, signer, expiresAt)
    const file = (name: string, token: string, holder = user) =>
      `?credentials=${fileOf(name, credsOf(token, holder))}`
    const right = open(file('right.creds', userJwt(account)), at)
    await until('it is connected', () => right.health().isConnected)
    t.ok(await isRefused(open('', at)), 'without credentials')
    t.ok(await isRefused(open(file('other.creds', userJwt(otherAccount)), at)), 'of an unknown account')
    t.ok(
      await isRefused(open(file('stolen.creds', userJwt(account), stranger), at)),
      'without the seed of the user',
    )
    const past = Math.floor(Date.now() / 1000) - 10
    t.ok(await isRefused(open(file('expired.creds', userJwt(account, past)), at)), 'expired')
  })
})

t.test('stream and notifications', async (t) => {
  const engines = await startEngines(t, { only: ['nats'] })
  const silent = { info() {}, warn() {}, error() {} }
  const subject = `${SETTLEMENT_SUBJECT}.test`

  function open(t: Test, url = engines.natsUrl): Nats {
    const nats = openNats({ url, name: 'test', log: silent })
    t.teardown(() => nats.close())
    return nats
  }

  const publish = (nats: Nats, id: string, text: string, to = subject) =>
    new Promise<void>((resolve, reject) => {
      nats.publish(to, id, Buffer.from(text), (error) => (error === null ? resolve() : reject(error)))
    })

  /** Until it succeeds: as senders use it whose message must be stored. */
  async function store(nats: Nats, id: string, text: string): Promise<number> {
    for (let attempt = 1; ; attempt++) {
      try {
        await publish(nats, id, text)
        return attempt
      } catch {
        await sleep(20)
      }
    }
  }

  t.test(
    'what is published before there is a connection or stream is refused, and stored later',
    async (t) => {
      const nats = open(t)
      t.equal(nats.health().isConnected, false)
      await t.rejects(nats.ping(), /not connected/)
      await t.rejects(publish(nats, 'early', 'early'), /not connected/)
      t.ok((await store(nats, 'early', 'early')) >= 1)
      await nats.ping()
      t.match(nats.health(), { isConnected: true, losses: 0 })
    },
  )

  t.test('one id is stored once; a message comes until it is acknowledged', async (t) => {
    const nats = open(t)
    for (let time = 0; time < 3; time++) await store(nats, 'same', 'first')
    const texts: string[] = []
    const deliveries: Delivery[] = []
    const stop = nats.consume((delivery) => {
      texts.push(Buffer.from(delivery.data).toString())
      deliveries.push(delivery)
      // The first time it is given back, the second time it is done.
      if (deliveries.filter(({ messageId }) => messageId === delivery.messageId).length === 1)
        delivery.release()
      else delivery.acknowledge()
    })
    await until('four deliveries have come', () => deliveries.length === 4)
    stop()
    t.same(texts.sort(), ['early', 'early', 'first', 'first'])
    t.same(new Set(deliveries.map(({ messageId }) => messageId)), new Set(['early', 'same']))
  })

  t.test('messages that nobody has acknowledged are counted, of one subject or of all', async (t) => {
    const nats = open(t)
    await store(nats, 'counted-0', 'x')
    for (const at of [1, 2]) await publish(nats, `counted-${at}`, 'x', `${SETTLEMENT_SUBJECT}.other`)
    const counts = () =>
      Promise.all(
        ['test', 'other', 'none', '>'].map((of) => nats.countSettlements(`${SETTLEMENT_SUBJECT}.${of}`)),
      )
    t.same(await counts(), [1, 2, 0, 3])
    const stop = nats.consume((delivery) => delivery.acknowledge())
    await until('all are acknowledged', async () => (await counts()).every((count) => count === 0))
    stop()
  })

  t.test('many messages are shared by several consumers, each given to one', async (t) => {
    const nats = open(t)
    const MESSAGES = 500
    const got: string[][] = [[], []]
    for (const own of got)
      open(t).consume((delivery) => {
        own.push(delivery.messageId ?? '')
        delivery.acknowledge()
      })
    await Promise.all(Array.from({ length: MESSAGES }, (_, at) => store(nats, `many-${at}`, 'x')))
    await until('all messages have come', () => got.flat().length >= MESSAGES)
    t.equal(new Set(got.flat()).size, MESSAGES)
    t.equal(got.flat().length, MESSAGES)
  })

  t.test('a consumer is not given more than it works on', async (t) => {
    const nats = open(t)
    const held: Delivery[] = []
    await Promise.all(Array.from({ length: 200 }, (_, at) => store(nats, `held-${at}`, 'x')))
    let acknowledged = 0
    let most = 0
    open(t).consume((delivery) => {
      held.push(delivery)
      most = Math.max(most, held.length - acknowledged)
    })
    await until('it has as many as it may', () => held.length >= 64)
    while (held.length < 200) {
      for (const delivery of held.slice(acknowledged)) {
        acknowledged++
        delivery.acknowledge()
      }
      await until('more messages come', () => held.length > acknowledged)
    }
    for (const delivery of held.slice(acknowledged)) delivery.acknowledge()
    t.equal(most, 64)
    t.equal(new Set(held.map(({ messageId }) => messageId)).size, 200)
  })

  t.test('notifications reach every listener; a lost connection says that some may be missing', async (t) => {
    const [speaker, one, two] = [open(t), open(t), open(t)]
    const heard: string[] = []
    let missed = 0
    for (const listener of [one, two])
      listener.listen(
        'tollgate.test',
        (payload) => heard.push(Buffer.from(payload).toString()),
        () => missed++,
      )
    await until('all three are connected', () =>
      [speaker, one, two].every((nats) => nats.health().isConnected),
    )
    await Promise.all([one.ping(), two.ping()])
    speaker.announce('tollgate.test', 'hello')
    await until('both have heard it', () => heard.length === 2)
    t.equal(missed, 0)
    engines.killEngine('nats')
    await until('both know that they missed some', () => missed === 2 && speaker.health().isConnected)
    await Promise.all([one.ping(), two.ping()])
    speaker.announce('tollgate.test', 'again')
    await until('both have heard it again', () => heard.length === 4)
    t.same(heard, ['hello', 'hello', 'again', 'again'])
    t.ok(one.health().losses >= 1)
  })

  t.test('published while the server is killed again and again: all stored, none twice', async (t) => {
    const nats = open(t)
    const MESSAGES = 300
    const seen = new Map<string, number>()
    let isOver = false
    const killer = (async () => {
      for (let kills = 0; kills < 3; kills++) {
        await until('the sender is connected', () => nats.health().isConnected)
        await sleep(60)
        engines.killEngine('nats')
      }
      isOver = true
    })()
    let serial = 0
    const publisher = async () => {
      while (serial < MESSAGES || !isOver) await store(nats, `killed-${serial++}`, 'x')
    }
    await Promise.all([killer, ...Array.from({ length: 8 }, publisher)])
    open(t).consume((delivery) => {
      seen.set(delivery.messageId ?? '', (seen.get(delivery.messageId ?? '') ?? 0) + 1)
      delivery.acknowledge()
    })
    await until('all messages have come', () => seen.size === serial)
    t.same(
      [...seen].filter(([, times]) => times > 1),
      [],
    )
  })

  t.test('a stream that is removed under its publisher is made again, and delivers', async (t) => {
    const nats = open(t)
    // So that the server is at it for a while.
    const large = 'x'.repeat(500_000)
    await Promise.all(Array.from({ length: 100 }, (_, at) => store(nats, `before ${at}`, large)))
    const connection = new Connection(engines.natsUrl, 'test', silent)
    t.teardown(() => connection.close())
    await until('there is a connection', () => connection.current !== null)
    const manager = await jetstreamManager(connection.current!)
    let isRemoved = false
    const removal = manager.streams.delete(SETTLEMENT_STREAM).then(() => {
      isRemoved = true
    })
    for (let at = 0; !isRemoved; at++) await store(nats, `during ${at}`, 'x')
    await removal
    await store(nats, 'after', 'x')
    const seen = new Set<string | null>()
    t.teardown(
      nats.consume((delivery) => {
        seen.add(delivery.messageId)
        delivery.acknowledge()
      }),
    )
    await until('the message behind the loss has come', () => seen.has('after'))
    t.notOk(seen.has('before 0'))
  })

  t.test('a stream that has forgotten how far it had numbered delivers all the same', async (t) => {
    const nats = open(t)
    const seen: (string | null)[] = []
    t.teardown(
      nats.consume((delivery) => {
        seen.push(delivery.messageId)
        delivery.acknowledge()
      }),
    )
    const numbered = Array.from({ length: 5 }, (_, at) => `numbered ${at}`)
    for (const id of numbered) await store(nats, id, 'x')
    await until('all messages have come', () => numbered.every((id) => seen.includes(id)))
    await nats.ping()
    await engines.stopEngine('nats')
    // As a kill may leave it, once all of its messages are done.
    const messages = join(engines.dataDir, 'nats/jetstream/$G/streams', SETTLEMENT_STREAM, 'msgs')
    for (const file of readdirSync(messages)) rmSync(join(messages, file))
    await engines.startEngine('nats')
    for (const id of ['again 0', 'again 1']) await store(nats, id, 'x')
    await until('both have come again', () => seen.includes('again 0') && seen.includes('again 1'))
    t.pass('both')
  })

  t.test('a consumer that is where its stream is stays, with all that it has given out', async (t) => {
    const nats = open(t)
    const held: Delivery[] = []
    t.teardown(
      nats.consume((delivery) => {
        if (delivery.messageId === 'done') delivery.acknowledge()
        else held.push(delivery)
      }),
    )
    const connection = new Connection(engines.natsUrl, 'test', silent)
    t.teardown(() => connection.close())
    await until('there is a connection', () => connection.current !== null)
    const manager = await jetstreamManager(connection.current!)
    const created = async () => (await manager.consumers.info(SETTLEMENT_STREAM, SETTLEMENT_CONSUMER)).created
    await store(nats, 'done', 'x')
    await store(nats, 'held', 'x')
    await until('one message is held', () => held.length === 1)
    const keeping = setInterval(() => held[0]!.keep(), 1_000)
    t.teardown(() => clearInterval(keeping))
    const before = await created()
    for (let times = 0; times < 3; times++) {
      // Each time both look whether all is in order.
      await store(nats, 'held', 'x')
      await store(open(t), 'done', 'x')
    }
    await sleep(200)
    t.equal(await created(), before)
    t.equal(held.length, 1)
    held[0]!.acknowledge()
  })

  t.test('a server that is not there is no reason to fail, and closing does not wait for it', async (t) => {
    const nats = openNats({ url: 'nats://127.0.0.1:1', name: 'test', log: silent })
    await until('the connection has failed', () => nats.health().lastError !== null)
    t.equal(nats.health().isConnected, false)
    await nats.close()
    t.pass('closed')
  })
})

t.test('task messages come back', async (t) => {
  const engines = await startEngines(t, { only: ['nats'] })
  const silent = { info() {}, warn() {}, error() {} }
  const MANY = 2_000

  function open(t: Test): Nats {
    const nats = openNats({ url: engines.natsUrl, name: 'test', log: silent })
    t.teardown(() => nats.close())
    return nats
  }

  async function store(nats: Nats, id: string, subject: string = TASK_SUBJECT): Promise<void> {
    const tryOnce = () =>
      new Promise<boolean>((resolve) => {
        nats.publish(subject, id, Buffer.from(id), (error) => resolve(error === null))
      })
    await until('it is stored', tryOnce)
  }

  t.test('a task handed back with a delay comes behind what came meanwhile, and no settlement', async (t) => {
    const nats = open(t)
    await store(nats, 'a-settlement', `${SETTLEMENT_SUBJECT}.test`)
    const seen: string[] = []
    const stop = nats.consumeTasks((delivery) => {
      const id = delivery.messageId!
      seen.push(id)
      if (id === 'slow' && seen.filter((other) => other === id).length === 1) delivery.release(1_500)
      else delivery.acknowledge()
    })
    await store(nats, 'slow')
    await until('the first has come', () => seen.length === 1)
    await store(nats, 'quick')
    await until('all three have come', () => seen.length === 3)
    t.same(seen, ['slow', 'quick', 'slow'])
    stop()
  })

  t.test(
    'long work on some keeps no others waiting, and what a process leaves goes to the next',
    async (t) => {
      const nats = open(t)
      const kept: Delivery[] = []
      let done = 0
      const stop = nats.consumeTasks((delivery) => {
        // Half of what one process may have.
        if (kept.length < 256) kept.push(delivery)
        else {
          done++
          delivery.acknowledge()
        }
      })
      await Promise.all(Array.from({ length: MANY }, (_, i) => store(nats, `task-${i}`)))
      await until('all but those that are held are done', () => done === MANY - 256)
      t.equal(kept.length, 256)
      stop()
      const heirs = new Set<string | null>()
      const other = open(t)
      const stopOther = other.consumeTasks((delivery) => {
        heirs.add(delivery.messageId)
        delivery.acknowledge()
      })
      for (const delivery of kept) delivery.release()
      // Some may go to requests that the first left open: they come again when their time to be acknowledged is over.
      await until('others have what was held', () => heirs.size >= 250)
      const left = new Set(kept.map(({ messageId }) => messageId))
      t.ok([...heirs].every((id) => left.has(id)))
      stopOther()
    },
  )
})

t.test('streams outlive a lost leader', async (t) => {
  // On a cluster of three servers streams have three replicas: the loss of a leader in mid-load loses no message.
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
})
