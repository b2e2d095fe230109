/** One run: gateways and settlers under calls and faults, then quiet until all is booked, then the invariants. */
import { Settler } from '../../pipelines/settlement/settler.ts'
import { Books } from './books.ts'
import { Faults, type Mutation } from './faults.ts'
import { Gateway, type World } from './gateway.ts'
import { Queue } from './queue.ts'
import { Random } from './random.ts'
import { Process, VirtualTime } from './virtual-time.ts'

const FAULTS_END_MS = 20_000
const CALLS_END_MS = 15_000
/** By then a call that began with the last fault has ended. */
const LAST_CALL_END_MS = 25_000
const QUIET_MAX_MS = 600_000
const OUTAGE_MAX_MS = 8_000
const RESTART_MAX_MS = 2_000
const BALANCE_MAX = 60

export interface Outcome {
  /** What is wrong at the end; nothing when all is well. */
  readonly problems: readonly string[]
  /** How often a process died, and what was booked in which order. */
  readonly deaths: number
  readonly rows: Books['rows']
}

export async function simulate(seed: number, mutation: Mutation | null = null): Promise<Outcome> {
  const time = new VirtualTime()
  const random = new Random(seed)
  const faults = new Faults(random, mutation)
  const queue = new Queue(time, random, faults)
  const books = new Books(time, random, faults)
  const gatewayCount = random.int(1, 2)
  const world: World = { time, random, faults, queue, books, gatewayCount, calls: new Map(), problems: [] }
  const accounts = Array.from({ length: random.int(1, 2) }, (_, at) => `account-${at}`)
  for (const account of accounts) books.open(account, BigInt(random.int(0, BALANCE_MAX)))
  const opened = new Map(books.wallets)

  const gateways = Array.from({ length: gatewayCount }, (_, at) => new Gateway(world, `g${at}`))
  const settlers = Array.from({ length: random.int(1, 2) }, () => new SettlerLife(world))
  for (let call = random.int(2, 12); call > 0; call--) {
    const [gateway, account] = [random.pick(gateways), random.pick(accounts)]
    time.after(random.int(0, CALLS_END_MS), () => gateway.call(account))
  }
  planFaults(world, gateways, settlers)
  await time.run(FAULTS_END_MS)
  faults.end()
  queue.comeBack()
  await time.run(LAST_CALL_END_MS)
  const isEmpty = () => queue.depth === 0 || faults.isStreamStuck
  await time.run(QUIET_MAX_MS, () => gateways.every((gateway) => gateway.isIdle) && isEmpty())
  // What a gateway does when its connection to NATS is back: notifications may be lost.
  for (const { credentials } of gateways) credentials?.reset()
  await time.run(time.now + 1_000)

  checkRows(world)
  checkWallets(world, opened)
  for (const [at, gateway] of gateways.entries()) await checkGateway(world, gateway, at)
  if (!isEmpty()) world.problems.push(`${queue.depth} messages are left in the stream`)
  for (const one of settlers) one.kill()
  return { problems: world.problems, deaths: faults.deaths, rows: books.rows }
}

class SettlerLife {
  readonly #world: World
  #process: Process
  #isOver = false

  constructor(world: World) {
    this.#world = world
    this.#process = new Process(world.time)
    this.#start()
  }

  kill(): void {
    this.#isOver = this.#world.faults.areOver
    this.#process.die()
  }

  #start(): void {
    const { time, random, faults, books, queue } = this.#world
    const process = new Process(time)
    this.#process = process
    process.onDeath = () => {
      if (!faults.areOver) faults.deaths += 1
      if (!this.#isOver) time.after(random.int(0, RESTART_MAX_MS), () => this.#start())
    }
    new Settler({
      nats: queue.natsOf(process),
      database: books.databaseOf(process),
      onBookedRows: () => undefined,
      onMalformed: ({ line }) => void this.#world.problems.push(`malformed: ${line}`),
      onRefused: (ids) => void this.#world.problems.push(`refused: ${ids.join()}`),
      log: { info() {}, warn() {}, error() {} },
      scheduler: process.scheduler,
    })
  }
}

function planFaults(
  { time, random, faults, queue }: World,
  gateways: readonly Gateway[],
  settlers: readonly SettlerLife[],
): void {
  if (faults.level === 0) return
  const some = (most: number, work: () => void) => {
    for (let times = random.int(0, most); times > 0; times--) time.after(random.int(0, FAULTS_END_MS), work)
  }
  const outage = (field: 'isNatsDown' | 'isDatabaseDown' | 'isDiskFull', after: () => void) => {
    faults[field] = true
    time.after(random.int(0, OUTAGE_MAX_MS), () => {
      faults[field] = false
      after()
    })
  }
  some(2, () => random.pick(gateways).kill())
  some(1, () => random.pick(gateways).losePower())
  some(2, () => random.pick(settlers).kill())
  some(2, () => outage('isNatsDown', () => queue.comeBack()))
  some(1, () => queue.loseStore())
  if (random.chance(0.2))
    some(1, () => {
      faults.isStreamStuck = true
    })
  some(1, () => outage('isDatabaseDown', () => undefined))
  some(1, () => outage('isDiskFull', () => undefined))
}

/** Every admitted call has one row, with its cost once its end was written. */
function checkRows({ books, calls, problems }: World): void {
  const rows = Map.groupBy(books.rows, (row) => row.request_id)
  const charges = Map.groupBy(
    books.entries.filter(({ kind }) => kind === 'charge'),
    (entry) => entry.ref,
  )
  for (const [id, found] of rows)
    if (!calls.has(id)) problems.push(`${id}: ${found.length} rows of a call nobody made`)
  for (const call of calls.values()) {
    const id = call.requestId
    const found = rows.get(id) ?? []
    const charged = charges.get(id) ?? []
    if (found.length > 1) problems.push(`${id}: ${found.length} rows`)
    if (charged.length > 1) problems.push(`${id}: charged ${charged.length} times`)
    if (found.length === 0 && call.admittedAt !== null && !call.isExcused)
      problems.push(`${id}: admitted, no row`)
    const cost = BigInt(found[0]?.cost ?? 0)
    if (cost !== 0n && cost !== call.cost) problems.push(`${id}: costs ${cost}, not ${call.cost}`)
    if (cost !== call.cost && call.settledAt !== null && !call.isExcused)
      problems.push(`${id}: its end was written with ${call.cost}, its row has ${found[0]?.cost}`)
    if (charged.reduce((sum, { amount }) => sum - amount, 0n) !== cost * BigInt(found.length))
      problems.push(`${id}: row and charge differ`)
  }
}

/** The ledger sums to the wallets, the rows to what was used, and nobody overdraws without bound. */
function checkWallets({ books, calls, gatewayCount, problems }: World, opened: Books['wallets']): void {
  for (const [account, wallet] of books.wallets) {
    const entries = books.entries.filter((entry) => entry.accountId === account)
    const sum = entries.reduce((total, { amount }) => total + amount, 0n)
    if (sum !== wallet.balance)
      problems.push(`${account}: the ledger sums to ${sum}, the balance is ${wallet.balance}`)
    const used = books.rows
      .filter((row) => row.account_id === account)
      .reduce((n, row) => n + BigInt(row.cost), 0n)
    if (used !== wallet.used) problems.push(`${account}: rows cost ${used}, used is ${wallet.used}`)
    // One gateway sees all it lets in. Another one sees the first one's calls when they are booked. What a loss of
    // power took from the journal is not seen again until it is booked.
    const unseen = [...calls.values()]
      .filter((call) => call.isExcused && call.accountId === account)
      .reduce((total, { estimate }) => total + estimate, 0n)
    const overdraft = BigInt(gatewayCount - 1) * opened.get(account)!.balance + unseen
    if (wallet.balance < -overdraft)
      problems.push(`${account}: balance ${wallet.balance} is under -${overdraft}`)
  }
}

/** Nothing is open, owed or reserved, and the totals are the booked ones. */
async function checkGateway({ books, problems }: World, gateway: Gateway, at: number): Promise<void> {
  if (!gateway.isIdle) problems.push(`gateway ${at} has calls or settlements left`)
  for (const [account, wallet] of books.wallets) {
    const view = gateway.credentials?.findWallet(account)
    if (view === undefined) continue
    if (!view.isIdle)
      problems.push(`gateway ${at}, ${account}: ${view.inFlight} in flight, ${view.unbooked} unbooked`)
    if (view.totals.balance !== wallet.balance || view.totals.version !== wallet.version)
      problems.push(`gateway ${at}, ${account}: knows ${view.totals.balance}, booked is ${wallet.balance}`)
  }
  if (!(await gateway.close())) problems.push(`gateway ${at} leaves ${gateway.filesLeft.join(' ')}`)
}
