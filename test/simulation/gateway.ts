/** A gateway process: the real journal, publisher, credentials and wallet views, under calls that are only numbers. */

import { SettlementPublisher } from '../../pipelines/settlement/publisher.ts'
import type { Credential } from '../../schemas/accounts/key.ts'
import type { Settlement } from '../../schemas/call-log/columns.ts'
import { Credentials } from '../../src/credentials/credentials.ts'
import type { WalletView } from '../../src/credentials/wallet.ts'
import { type Journal, openJournal } from '../../src/journal/journal.ts'
import { makeInterruptedSettlement } from '../../src/journal/lines.ts'
import type { Books } from './books.ts'
import type { Faults } from './faults.ts'
import { MemoryDisk, memoryFiles } from './memory-files.ts'
import type { Queue } from './queue.ts'
import type { Random } from './random.ts'
import { Process, type VirtualTime } from './virtual-time.ts'

/** Small, so that a run has several. */
const SEGMENT_BYTES = 2_000
const PAGE_BYTES = 4_000
/** What a loss of power can cost: two rounds of bringing a file to the disk, each waiting for its turn. */
const POWER_LOSS_MS = 200
const CALL_MAX_MS = 3_000
const RESTART_MAX_MS = 2_000
export const ESTIMATE_MAX = 8

/** What the world knows of one call. */
export interface CallRecord {
  readonly requestId: string
  readonly accountId: string
  readonly estimate: bigint
  readonly cost: bigint
  /** Since when no kill can undo it; null before. */
  admittedAt: number | null
  settledAt: number | null
  /** A loss of power may have taken its admission, its settlement, or both. */
  isExcused: boolean
}

export interface World {
  readonly time: VirtualTime
  readonly random: Random
  readonly faults: Faults
  readonly queue: Queue
  readonly books: Books
  readonly gatewayCount: number
  readonly calls: Map<string, CallRecord>
  readonly problems: string[]
}

const quiet = { info() {}, warn() {}, error() {} }

export class Gateway {
  readonly #world: World
  readonly #name: string
  #disk = new MemoryDisk()
  #process: Process
  #journal: Journal | null = null
  #publisher: SettlementPublisher | null = null
  #credentials: Credentials | null = null
  /** Until when what was written may not be on the disk: now, while the journal is open. */
  #wroteUntil = 0
  #serial = 0
  #life = 0

  constructor(world: World, name: string) {
    this.#world = world
    this.#name = name
    this.#process = new Process(world.time)
    this.start()
  }

  get isIdle(): boolean {
    const depth = this.#journal?.depth()
    return this.#process.isAlive && depth !== undefined && depth.open === 0 && depth.settlementsUnbooked === 0
  }

  get credentials(): Credentials | null {
    return this.#credentials
  }

  get filesLeft(): string[] {
    return [...this.#disk.files.keys()]
  }

  kill(): void {
    this.#process.die()
  }

  /** The machine under it stops at once. */
  losePower(): void {
    const { random, calls } = this.#world
    this.#process.die()
    for (const call of calls.values()) {
      const isRecent = (at: number | null) => at !== null && at > this.#wroteUntil - POWER_LOSS_MS
      if (call.requestId.startsWith(this.#name) && (isRecent(call.admittedAt) || isRecent(call.settledAt)))
        call.isExcused = true
    }
    this.#disk.losePower(random)
  }

  start(): void {
    const { time, random, faults } = this.#world
    const process = new Process(time)
    this.#process = process
    this.#journal = null
    this.#credentials = null
    process.onDeath = () => {
      faults.deaths += 1
      if (this.#journal !== null) this.#wroteUntil = time.now
      time.after(random.int(0, RESTART_MAX_MS), () => this.start())
    }
    if (faults.mutation === 'journal not recovered') this.#disk = new MemoryDisk()
    const files = memoryFiles(this.#disk, process, random, {
      diesWriting: () => faults.happens(0.005),
      isFull: () => faults.isDiskFull,
    })
    const { clock } = process
    const opening = openJournal({
      directory: '/journal',
      log: quiet,
      files,
      clock,
      segmentBytes: SEGMENT_BYTES,
      pageBytes: PAGE_BYTES,
    })
    opening.then(
      (journal) => this.#opened(process, journal),
      () => process.die(),
    )
    time.promiseSettled()
  }

  /** A call of some account, let in or refused as the wallet view says. */
  call(accountId: string): void {
    const { time, random } = this.#world
    const process = this.#process
    const credentials = this.#credentials
    if (!process.isAlive || credentials === null) return
    const estimate = random.int(1, ESTIMATE_MAX)
    const cost = random.chance(0.2) ? 0 : random.int(1, estimate)
    const durationMs = random.chance(0.2) ? 0 : random.int(0, CALL_MAX_MS)
    const requestId = `${this.#name}-${this.#serial++}`
    const record = { requestId, accountId, estimate: BigInt(estimate), cost: BigInt(cost) }
    const call: CallRecord = { ...record, admittedAt: null, settledAt: null, isExcused: false }
    const known = credentials.peek(accountId)
    if (known !== undefined) return this.#begin(process, known.view, call, durationMs)
    credentials
      .load(accountId)
      .then((loaded) => {
        if (process.isAlive && loaded !== null) this.#begin(process, loaded.view, call, durationMs)
      })
      // PostgreSQL is away, and the call is refused without a row; or the process has died.
      .catch(() => undefined)
    time.promiseSettled()
  }

  /** Ends in order, as at the end of the service; true when nothing is left behind. */
  async close(): Promise<boolean> {
    this.#publisher?.stop()
    const closing = this.#journal?.close()
    await this.#world.time.run(this.#world.time.now + 1_000)
    await closing
    return this.filesLeft.every((path) => /\/(?:id|spare)$/.test(path))
  }

  /** A gateway that is alone never believes in more than there is, whatever it missed: else a wallet is overdrawn. */
  #checkView(view: WalletView, accountId: string): void {
    const { books, calls, gatewayCount, problems } = this.#world
    if (gatewayCount > 1) return
    let left = books.wallets.get(accountId)!.balance
    for (const call of calls.values()) {
      if (call.accountId !== accountId) continue
      // Booked, perhaps, and in no journal any more.
      if (call.isExcused) return
      if (call.settledAt !== null && !books.has(call.requestId)) left -= call.cost
    }
    if (view.balance > left) problems.push(`${accountId}: ${view.balance} are believed in, ${left} are left`)
  }

  #opened(process: Process, journal: Journal): void {
    if (!process.isAlive) return
    const { time, random, faults, queue, books } = this.#world
    this.#journal = journal
    const database = books.databaseOf(process)
    const nats = queue.natsOf(process)
    const isAwaited = random.chance(0.5)
    const credentials = new Credentials({
      database: {
        keys: {
          lookupHash: (rawKey) => Buffer.from(rawKey),
          findCredential: (hash) => database.findWallet(hash.toString()).then(credentialOf),
        },
        wallets: database.wallets,
      },
      graceMs: () => Number.MAX_SAFE_INTEGER,
      recoveredCost: (account) =>
        faults.mutation === 'recovered costs forgotten' ? 0n : journal.recoveredCost(account),
      isAway: () => true,
      onFault() {},
      now: () => time.now,
    })
    this.#credentials = credentials
    this.#publisher = new SettlementPublisher({
      journal,
      nats: faults.mutation === 'confirmed when stored' ? confirmedWhenStored(nats) : nats,
      database,
      onBooked: ({ costs, wallets }) => credentials.applyBooked(costs, wallets),
      isAwaited: () => isAwaited,
      onNotificationsMissed: () => void credentials.refreshWallets(credentials.walletIds),
      log: quiet,
      scheduler: process.scheduler,
    })
    // Its clients have waited for it, while what the one before left is being booked.
    if (this.#life++ > 0)
      process.after(random.int(0, 300), () => {
        if (!faults.areOver) this.call(random.pick([...books.wallets.keys()]))
      })
  }

  #begin(process: Process, view: WalletView, call: CallRecord, durationMs: number) {
    const { time, faults, calls, random } = this.#world
    const journal = this.#journal!
    const admission = {
      request_id: call.requestId,
      account_id: call.accountId,
      key_id: 'key',
      model: 'model',
      protocol: 'chat-completions',
      stream: true,
      submitted_at: time.now,
      estimate: String(call.estimate),
      session_id: null,
    }
    const ended: Settlement = {
      ...makeInterruptedSettlement(admission, time.now),
      status: 'success',
      cost: String(call.cost),
      error_message: random.chance(0.1) ? 'x'.repeat(random.int(0, SEGMENT_BYTES)) : null,
    }
    const refused: Settlement = { ...ended, status: 'rejected', cost: '0' }
    this.#checkView(view, call.accountId)
    calls.set(call.requestId, call)
    if (!view.admit(call.estimate, true)) return journal.settle(null, refused)
    const end = () => {
      view.end(call.estimate, call.cost)
      journal.settle(ticket, ended)
      // Behind the write that this turn brings.
      process.after(0, () => {
        if (journal.depth().isWritable) call.settledAt = time.now
      })
    }
    const written = (error: Error | null) => {
      if (!process.isAlive) return
      if (error !== null) {
        view.end(call.estimate, 0n)
        journal.settle(null, refused)
        return
      }
      call.admittedAt = time.now
      process.after(durationMs, end)
    }
    if (faults.mutation === 'admitted before the write') call.admittedAt = time.now
    const ticket = journal.admit(admission, written)
    faults.mayDie(process)
  }
}

function credentialOf(wallet: Credential['wallet']): Credential {
  return {
    wallet,
    account: { id: wallet.accountId },
    key: { id: 'key', grant: null, allowedAddresses: null },
    budgets: [],
    secret: null,
  } as unknown as Credential
}

/** The mutation: what JetStream has stored counts as booked. */
function confirmedWhenStored(nats: ReturnType<Queue['natsOf']>): ReturnType<Queue['natsOf']> {
  let tell: (payload: Uint8Array) => void = () => undefined
  return {
    ...nats,
    listen(subject, heard, missed) {
      tell = heard
      return nats.listen(subject, heard, missed)
    },
    publish: (subject, id, payload, done) =>
      nats.publish(subject, id, payload, (error) => {
        if (error === null) tell(Buffer.from(JSON.stringify({ batches: [id], wallets: [] })))
        done(error)
      }),
  }
}
