/** The contract of `Tasks` in memory, with the wallets and the ledger behind it. Compared with PostgreSQL by a test. */

import type { WalletTotals } from '../../../schemas/accounts/account.ts'
import type { Settlement } from '../../../schemas/call-log/columns.ts'
import { isFinal } from '../../../schemas/tasks/task.ts'
import type { IdempotencyScope } from '../../../src/postgres/requests/idempotency.ts'
import type { LostFinding, LostSubmit } from '../../../src/postgres/tasks/lost-submits.ts'
import type { LostSubmits, Tasks } from '../../../src/postgres/tasks/repository.ts'
import type {
  CreateTaskOutcome,
  MoveOutcome,
  NewTask,
  Task,
  TaskListQuery,
  TaskMove,
} from '../../../src/postgres/tasks/types.ts'

const isShown = ({ state, isEarly, deletedAt }: Task): boolean =>
  deletedAt === null && (state !== 'refused' || isEarly)

interface Stored {
  task: Task
  intent: NewTask['idempotency']
}

export interface Entry {
  readonly accountId: string
  readonly kind: 'hold' | 'release' | 'refund' | 'charge'
  readonly amount: bigint
  readonly ref: string
}

/** Errors put in on purpose. */
export interface Lies {
  /** A transition ignores the version. */
  readonly anyVersion?: boolean
  /** Readers see that nobody has sent it yet. */
  readonly neverSent?: boolean
  /** A hold that should come back does not. */
  readonly keepsHolds?: boolean
  /** No record is made of a submit that was lost. */
  readonly forgetsLost?: boolean
}

/** What is simulated of both. */
export type SimulatedTasks = Tasks & Pick<LostSubmits, 'claim' | 'recordFinding'>

export class MemoryTasks implements SimulatedTasks {
  readonly #rows = new Map<string, Stored>()
  readonly #wallets = new Map<string, WalletTotals>()
  readonly #objects = new Map<string, number>()
  /** By the id of the task. */
  readonly lost = new Map<string, LostSubmit>()
  readonly entries: Entry[] = []
  readonly settlements: Settlement[] = []
  readonly #lies: Lies

  /** Called with each end of a task. */
  onEnd: (id: string) => void = () => undefined

  constructor(lies: Lies = {}) {
    this.#lies = lies
  }

  openWallet(accountId: string, balance: bigint): void {
    this.#wallets.set(accountId, { accountId, balance, held: 0n, used: 0n, version: 1n })
  }

  walletOf = (accountId: string): WalletTotals => this.#wallets.get(accountId)!

  get all(): Task[] {
    return [...this.#rows.values()].map(({ task }) => task)
  }

  async create(task: NewTask): Promise<CreateTaskOutcome> {
    const { idempotency, accountId, hold } = task
    const bound = idempotency === null ? undefined : this.#boundTo(idempotency)
    if (bound !== undefined && bound.task.id !== task.id)
      return bound.intent!.requestHash.equals(idempotency!.requestHash)
        ? { outcome: 'existing', task: bound.task }
        : { outcome: 'reused_key' }
    const wallet = this.walletOf(accountId)
    const known = this.#rows.get(task.id)
    if (known !== undefined) return { outcome: 'created', task: known.task, wallet }
    if (hold > wallet.balance) return { outcome: 'insufficient', wallet }
    this.#post(accountId, 'hold', -hold, task.id)
    const changed = this.#change(accountId, { balance: -hold, held: hold })
    const { idempotency: intent, ...fields } = task
    const made: Task = { ...fresh, ...fields, touchedAt: task.submittedAt }
    this.#rows.set(task.id, { task: made, intent })
    return { outcome: 'created', task: made, wallet: changed }
  }

  /** Of an account that makes nothing but tasks. */
  isAnswered = (scope: IdempotencyScope, key: string): boolean => this.#boundTo({ scope, key }) !== undefined

  #boundTo({ scope, key }: { readonly scope: IdempotencyScope; readonly key: string }): Stored | undefined {
    return [...this.#rows.values()].find(
      ({ task, intent }) =>
        intent?.scope === scope && intent.key === key && (!isFinal(task.state) || task.state === 'succeeded'),
    )
  }

  async applyTransition(move: TaskMove): Promise<MoveOutcome> {
    const stored = this.#rows.get(move.id)
    if (stored === undefined) throw new Error(`There is no task ${move.id}`)
    const { task } = stored
    if (task.version !== move.version && !this.#lies.anyVersion) return { outcome: 'stale', task }
    const { accountId, hold, version } = task
    let wallet: WalletTotals | null = null
    const { money, settlement } = move
    if (money !== null) {
      const kind = money === 'charge' ? 'release' : money
      if (!this.#lies.keepsHolds || money === 'charge') {
        this.#post(accountId, kind, hold, task.id)
        wallet = this.#change(accountId, { balance: hold, held: -hold })
      }
      const cost = BigInt(settlement?.cost ?? 0)
      if (settlement !== null) this.settlements.push(settlement)
      if (cost > 0n) {
        this.#post(accountId, 'charge', -cost, task.id)
        wallet = this.#change(accountId, { balance: -cost, used: cost })
      }
    }
    stored.task = { ...task, ...move.changes, state: move.to, version: version + 1, touchedAt: move.at }
    if (isFinal(move.to) && !isFinal(task.state)) this.onEnd(move.id)
    if (move.isLost && !this.#lies.forgetsLost) this.#recordLost(stored.task, move.at)
    return { outcome: 'moved', task: stored.task, wallet }
  }

  #recordLost(task: Task, now: number): void {
    const { id, accountId, requestId, kind, model, channelId, errorMessage, upstreamId, upstreamState } = task
    const former = this.lost.get(id)
    if (former !== undefined && (upstreamId === null || !['open', 'absent'].includes(former.state))) return
    const state = upstreamId === null ? ('open' as const) : ('found' as const)
    const named = { state, upstreamId, upstreamState, nextCheckAt: now, cost: null, closedAt: null }
    this.lost.set(id, {
      ...{
        taskId: id,
        accountId,
        requestId,
        kind,
        model,
        channelId,
        lostAt: now,
        reason: errorMessage ?? '',
      },
      ...{ checks: 0, checkedAt: null, closedBy: null, closeReason: null },
      ...former,
      ...named,
    })
  }

  async claim(now: number, until: number, limit: number): Promise<LostSubmit[]> {
    const due = [...this.lost.values()]
      .filter(({ closedAt, nextCheckAt }) => closedAt === null && nextCheckAt !== null && nextCheckAt <= now)
      .sort((a, b) => a.nextCheckAt! - b.nextCheckAt!)
      .slice(0, limit)
      .map((lost) => ({ ...lost, nextCheckAt: until }))
    for (const lost of due) this.lost.set(lost.taskId, lost)
    return due
  }

  async recordFinding(taskId: string, finding: LostFinding, now: number): Promise<boolean> {
    const lost = this.lost.get(taskId)
    if (lost === undefined || lost.closedAt !== null) return false
    const { end, ...found } = finding
    const state = end ?? (found.upstreamId === null ? 'open' : 'found')
    const closedAt = end === null ? null : now
    this.lost.set(taskId, { ...lost, ...found, state, closedAt, checks: lost.checks + 1, checkedAt: now })
    return true
  }

  async read(ids: readonly string[]): Promise<Task[]> {
    const tasks = ids.flatMap((id) => this.#rows.get(id)?.task ?? [])
    if (!this.#lies.neverSent) return tasks
    return tasks.map((task) => (task.state === 'submitting' ? { ...task, state: 'waiting' } : task))
  }

  async find(accountId: string, kind: Task['kind'], id: string): Promise<Task | null> {
    const task = this.#rows.get(id)?.task
    const isTheirs = task?.accountId === accountId && task.kind === kind && isShown(task)
    return isTheirs ? task : null
  }

  async findByResponse(accountId: string, id: string): Promise<Task | null> {
    const found = this.all.find((task) => task.id === id || task.upstreamId === id)
    return found === undefined ? null : this.find(accountId, 'response', found.id)
  }

  async list({ accountId, kind, states, before = null, limit }: TaskListQuery) {
    const found = this.all
      .filter((task) => task.accountId === accountId && task.kind === kind && isShown(task))
      .filter(({ state }) => states === null || states.includes(state))
      .filter(({ id }) => before === null || id < before)
      .sort((a, b) => (a.id < b.id ? 1 : -1))
    return { tasks: found.slice(0, limit), hasMore: found.length > limit }
  }

  async removeFiles(): Promise<void> {
    throw new Error('Nothing that is simulated deletes files by hand.')
  }

  async listAll(): Promise<never[]> {
    throw new Error('Nothing that is simulated lists the tasks of all accounts.')
  }

  async renewChain(): Promise<never> {
    throw new Error('Nothing that is simulated tries a task again by hand.')
  }

  async listOpenJobs(): Promise<never[]> {
    throw new Error('Nothing that is simulated lists open jobs.')
  }

  async deleteRecord(accountId: string, kind: Task['kind'], id: string, now: number): Promise<boolean> {
    const task = await this.find(accountId, kind, id)
    if (task === null || task.endedAt === null) return false
    this.#rows.get(id)!.task = { ...task, deletedAt: now }
    return true
  }

  #open(): Stored[] {
    return [...this.#rows.values()].filter(({ task }) => task.endedAt === null)
  }

  async claimStale(before: number, now: number, limit: number, newBefore = before) {
    const isNew = ({ state, chain }: Task) => state === 'waiting' && chain === 0
    const neglected = this.#open()
      .filter(({ task }) => task.touchedAt < (isNew(task) ? newBefore : before))
      .sort((a, b) => a.task.touchedAt - b.task.touchedAt)
      .slice(0, limit)
    for (const stored of neglected) {
      const { task } = stored
      const touchedAt = task.state === 'submitting' ? task.touchedAt : now
      stored.task = { ...task, chain: task.chain + 1, touchedAt }
    }
    return neglected.map(({ task: { id, chain } }) => ({ id, chain }))
  }

  async findOverdue(now: number, limit: number): Promise<string[]> {
    return this.#open()
      .filter(({ task }) => task.state !== 'storing' && task.deadlineAt <= now)
      .sort((a, b) => a.task.deadlineAt - b.task.deadlineAt)
      .slice(0, limit)
      .map(({ task }) => task.id)
  }

  async touch(ids: readonly string[], now: number): Promise<void> {
    for (const stored of this.#open())
      if (ids.includes(stored.task.id) && stored.task.touchedAt < now)
        stored.task = { ...stored.task, touchedAt: now }
  }

  async countOpen() {
    const groups = Map.groupBy(this.#open(), ({ task }) => `${task.kind} ${task.state}`)
    return [...groups.values()].map((group) => ({
      kind: group[0]!.task.kind,
      state: group[0]!.task.state,
      count: group.length,
    }))
  }

  async recordObjects(
    objects: readonly { readonly key: string; readonly expiresAt: number }[],
  ): Promise<void> {
    for (const { key, expiresAt } of objects)
      this.#objects.set(key, Math.max(expiresAt, this.#objects.get(key) ?? 0))
  }

  async findExpiredObjects(now: number, limit: number): Promise<string[]> {
    return [...this.#objects]
      .filter(([, expiresAt]) => expiresAt <= now)
      .sort(([, a], [, b]) => a - b)
      .slice(0, limit)
      .map(([key]) => key)
  }

  async removeObjects(keys: readonly string[]): Promise<void> {
    for (const key of keys) this.#objects.delete(key)
  }

  #post(accountId: string, kind: Entry['kind'], amount: bigint, ref: string): void {
    this.entries.push({ accountId, kind, amount, ref })
  }

  #change(accountId: string, by: Partial<Pick<WalletTotals, 'balance' | 'held' | 'used'>>): WalletTotals {
    const { balance, held, used, version } = this.walletOf(accountId)
    const changed = {
      accountId,
      balance: balance + (by.balance ?? 0n),
      held: held + (by.held ?? 0n),
      used: used + (by.used ?? 0n),
      version: version + 1n,
    }
    this.#wallets.set(accountId, changed)
    return changed
  }
}

/** What a row begins with. */
const fresh = {
  state: 'waiting',
  version: 1,
  chain: 0,
  channelId: null,
  upstreamModel: null,
  upstreamId: null,
  upstreamState: null,
  result: null,
  errorCode: null,
  errorMessage: null,
  refusedStatus: null,
  attempts: [],
  cost: null,
  acceptedAt: null,
  endedAt: null,
  deletedAt: null,
} as const
