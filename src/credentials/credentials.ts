/**
 * The credentials known to this process, and their wallets. A known key costs one look-up; an unknown one reads
 * PostgreSQL once. Changes arrive by notification, and a changed entry is read again before it is served. While
 * PostgreSQL is down, known entries are served for a time.
 */
import type { WalletTotals } from '../../schemas/accounts/account.ts'
import { type BudgetPeriods, parseWalletId } from '../../schemas/accounts/budget.ts'
import type { Credential } from '../../schemas/accounts/key.ts'
import { Failure } from '../../schemas/failure.ts'
import type { Credits } from '../../schemas/money.ts'
import { AddressList } from '../core/keys/address-list.ts'
import type { Keys } from '../postgres/accounts/repository.ts'
import type { Wallets } from '../postgres/billing/repository.ts'
import type { ChangeKind } from '../postgres/changes.ts'
import { BudgetView } from './budget.ts'
import { capTotals, WalletView } from './wallet.ts'

/** A change of what this process knows of callers. */
type CredentialChange = Exclude<ChangeKind, 'channel'>

/** One known key. `stale` entries are read again before they are served. */
export interface KnownKey extends Omit<Credential, 'budgets'> {
  readonly view: WalletView
  /** Balance of the key's spend cap; null without one. */
  readonly cap: WalletView | null
  readonly budgets: readonly BudgetView[]
  /** Addresses that the key works from; null: all. */
  readonly addresses: AddressList | null
}

interface Entry {
  known: KnownKey
  isStale: boolean
}

interface CredentialsOptions {
  readonly database: {
    readonly keys: Pick<Keys, 'lookupHash' | 'findCredential'>
    readonly wallets: Pick<Wallets, 'read'>
  }
  /** Returns how long known keys are served while PostgreSQL is down, milliseconds. */
  readonly graceMs: () => number
  /** Returns the cost that an earlier run of this process charged an account or a key and that is not booked yet. */
  readonly recoveredCost: (id: string) => Credits
  /** Whether an error says that PostgreSQL does not answer. */
  readonly isAway: (error: unknown) => boolean
  /** Called when totals of wallets could not be read though PostgreSQL answers. Must not throw. */
  readonly onFault: (error: unknown) => void
  readonly now?: () => number
}

const MAX_KNOWN_KEYS = 100_000
const MAX_UNKNOWN_KEYS = 10_000
/** A key that does not exist is not read again for this long, unless some key changes. */
export const UNKNOWN_KEY_TTL_MS = 10_000

/** Returns the id by which a change names a known key. */
const IDS: Readonly<Record<Exclude<CredentialChange, 'wallet'>, (known: KnownKey) => string | null>> = {
  key: ({ key }) => key.id,
  account: ({ account }) => account.id,
  agent: ({ key }) => key.agentId,
}

const NO_BUDGETS: readonly BudgetView[] = []

export class Credentials {
  readonly #options: CredentialsOptions
  readonly #now: () => number
  readonly #entries = new Map<string, Entry>()
  readonly #unknown = new Map<string, number>()
  readonly #loading = new Map<string, Promise<KnownKey | null>>()
  readonly #wallets = new Map<string, WalletView>()
  readonly #budgets = new Map<string, BudgetView>()
  /** By key; one without budgets is absent. */
  readonly #budgetsOf = new Map<string, readonly BudgetView[]>()
  /** Totals received while keys are being read: the rows read may be older. */
  readonly #changedIds = new Map<string, WalletTotals>()
  #databaseLostAt: number | null = null
  /** Rises with every change: a row that was read while it rose may be outdated. */
  #changes = 0

  constructor(options: CredentialsOptions) {
    this.#options = options
    this.#now = options.now ?? Date.now
  }

  /** Returns the known key if it can be served at once, else undefined. */
  peek(rawKey: string): KnownKey | undefined {
    const entry = this.#entries.get(rawKey)
    if (entry === undefined || entry.isStale) return undefined
    if (this.#databaseLostAt !== null) this.#checkGrace()
    return entry.known
  }

  /**
   * Reads the key from PostgreSQL; null when there is no such key. Throws `service_unavailable` while PostgreSQL is down,
   * and any other error of it: a key that cannot be read must not go on by what was known of it.
   */
  load(rawKey: string): Promise<KnownKey | null> {
    const until = this.#unknown.get(rawKey)
    if (until !== undefined && until > this.#now()) return Promise.resolve(null)
    const running = this.#loading.get(rawKey)
    if (running) return running
    const loading = this.#load(rawKey).finally(() => {
      this.#loading.delete(rawKey)
      if (this.#loading.size === 0) this.#changedIds.clear()
    })
    this.#loading.set(rawKey, loading)
    return loading
  }

  /** Returns the wallet of an account that some known key belongs to, or of a known key that has a cap. */
  findWallet(id: string): WalletView | undefined {
    return this.#wallets.get(id)
  }

  /** The ids of known wallets, and of budgets. */
  get walletIds(): string[] {
    return [...this.#wallets.keys(), ...this.#budgets.keys()]
  }

  /** Takes a notification: the entry that it names is read again before it is served. */
  forgetChanged(kind: CredentialChange, id: string): void {
    if (kind === 'wallet') {
      void this.refreshWallets([id])
      return
    }
    this.#changes++
    if (kind === 'key') this.#unknown.clear()
    for (const entry of this.#entries.values()) if (IDS[kind](entry.known) === id) entry.isStale = true
  }

  /** Notifications may have been missed: everything is read again before it is served. */
  reset(): void {
    this.#changes++
    this.#unknown.clear()
    for (const entry of this.#entries.values()) entry.isStale = true
    void this.refreshWallets(this.walletIds)
  }

  onDatabaseLost(): void {
    this.#databaseLostAt ??= this.#now()
  }

  onDatabaseFound(): void {
    this.#databaseLostAt = null
  }

  /** Takes a commit: charges of this process are booked, and the totals include them, in one step. */
  applyBooked(costs: ReadonlyMap<string, Credits>, wallets: readonly WalletTotals[]): void {
    for (const [id, cost] of costs) {
      this.#wallets.get(id)?.applyBooked(cost)
      for (const budget of this.#budgetsOf.get(id) ?? NO_BUDGETS) budget.applyBooked(cost)
    }
    this.update(wallets)
  }

  /** Takes totals as booked; older ones than those known are ignored. */
  update(wallets: readonly WalletTotals[]): void {
    for (const totals of wallets) {
      const view = this.#wallets.get(totals.accountId)
      if (view !== undefined) view.update(totals)
      else if (this.#updateBudget(totals)) continue
      else if (
        this.#loading.size > 0 &&
        totals.version > (this.#changedIds.get(totals.accountId)?.version ?? 0n)
      )
        this.#changedIds.set(totals.accountId, totals)
    }
  }

  /** Returns true for totals of a budget's period. */
  #updateBudget(totals: WalletTotals): boolean {
    const period = parseWalletId(totals.accountId)
    if (period === null) return false
    const budget = this.#budgets.get(period.budgetId)
    budget?.update(period.startsAt, totals)
    if (budget?.isOutOfPeriods(period.startsAt))
      for (const entry of this.#entries.values())
        if (entry.known.budgets.includes(budget)) entry.isStale = true
    return true
  }

  /** Returns the estimates of all open calls of this process. */
  get inFlight(): Credits {
    let sum = 0n
    // Views of caps have the ids of their keys: a call of a capped key is in two.
    for (const [id, { inFlight }] of this.#wallets) if (!id.startsWith('key_')) sum += inFlight
    return sum
  }

  /** Reads the totals of known wallets again. A failure changes nothing: the next reading comes soon. */
  async refreshWallets(ids: readonly string[]): Promise<void> {
    const known = ids.filter((id) => this.#wallets.has(id) || this.#budgets.has(id))
    if (known.length === 0) return
    try {
      this.update(await this.#options.database.wallets.read(known))
    } catch (error) {
      // While PostgreSQL is down the health check calls `onDatabaseLost`.
      if (!this.#options.isAway(error)) this.#options.onFault(error)
    }
  }

  /** Returns the reason why no key is served; null while known keys are. */
  explainUnready(): string | null {
    const lostAt = this.#databaseLostAt
    const isOver = lostAt !== null && this.#now() - lostAt > this.#options.graceMs()
    return isOver ? 'PostgreSQL has been away for longer than database.grace_seconds' : null
  }

  #checkGrace(): void {
    if (this.explainUnready() !== null) throw unavailable()
  }

  async #load(rawKey: string): Promise<KnownKey | null> {
    const { database } = this.#options
    const changes = this.#changes
    let credential: Credential | null
    try {
      credential = await database.keys.findCredential(database.keys.lookupHash(rawKey))
    } catch (error) {
      if (!this.#options.isAway(error)) throw error
      const entry = this.#entries.get(rawKey)
      this.onDatabaseLost()
      this.#checkGrace()
      if (entry !== undefined) return entry.known
      throw unavailable((error as Error).message)
    }
    if (credential === null) {
      this.#entries.delete(rawKey)
      // Not where keys have changed meanwhile: it may be the very key that was made just now.
      if (changes === this.#changes)
        this.#store(this.#unknown, rawKey, this.#now() + UNKNOWN_KEY_TTL_MS, MAX_UNKNOWN_KEYS)
      return null
    }
    const capped = capTotals(credential.key.grant)
    const cap = capped === null ? null : this.#updateView(capped)
    const budgets = credential.budgets.length === 0 ? NO_BUDGETS : credential.budgets.map(this.#budgetOf)
    if (budgets.length === 0) this.#budgetsOf.delete(credential.key.id)
    else this.#budgetsOf.set(credential.key.id, budgets)
    const { allowedAddresses } = credential.key
    const addresses = allowedAddresses === null ? null : new AddressList(allowedAddresses)
    const known: KnownKey = {
      ...credential,
      view: this.#updateView(credential.wallet),
      cap,
      budgets,
      addresses,
    }
    this.#store(this.#entries, rawKey, { known, isStale: changes !== this.#changes }, MAX_KNOWN_KEYS)
    return known
  }

  #updateView(totals: WalletTotals): WalletView {
    const existing = this.#wallets.get(totals.accountId)
    if (existing) {
      existing.update(totals)
      return existing
    }
    const view = new WalletView(totals, this.#options.recoveredCost(totals.accountId))
    const heard = this.#changedIds.get(totals.accountId)
    if (heard !== undefined) view.update(heard)
    this.#wallets.set(totals.accountId, view)
    return view
  }

  readonly #budgetOf = (periods: BudgetPeriods): BudgetView => {
    const { id } = periods.budget
    const known = this.#budgets.get(id)
    known?.renew(periods)
    const view = known ?? new BudgetView(periods)
    this.#budgets.set(id, view)
    return view
  }

  /** Stores an entry; at the limit the oldest one is removed. */
  #store<V>(map: Map<string, V>, key: string, value: V, limit: number): void {
    map.delete(key)
    if (map.size >= limit) map.delete(map.keys().next().value!)
    map.set(key, value)
  }
}

const unavailable = (internal?: string): Failure =>
  new Failure(
    'service_unavailable',
    'The service cannot check API keys at the moment. Try again in a minute.',
    {
      ...(internal === undefined ? {} : { internal }),
      headers: [['retry-after', '5']],
    },
  )
