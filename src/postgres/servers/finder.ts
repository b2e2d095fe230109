/** Finds, of several servers of a cluster, the one to connect to, and notices when that is another one. */
import { setTimeout as sleep } from 'node:timers/promises'
import { waitWithin } from '../errors.ts'
import type { Address, Target } from './address.ts'

/** Answer of a server. */
export interface ServerState {
  readonly isRecovering: boolean
  /** Transactions are read-only: of a standby, or where an operator has set `default_transaction_read_only`. */
  readonly isReadOnly: boolean
  /** The timeline that it writes, in hex; each promotion begins a later one. Null while it recovers. */
  readonly timeline: string | null
}

export interface Probe {
  readonly address: Address
  /** Asks the server. Rejects where it does not answer. */
  ask(): Promise<ServerState>
  /** Closes the connection; the next question opens another. */
  reset(): void
}

const WATCH_INTERVAL_MS = 1_000
/** Between rounds while a connection waits. */
const SEARCH_INTERVAL_MS = 200
/** A server that answers later counts as away. */
const PROBE_BOUND_MS = 2_000
/** Less than a caller waits for its statement, so that it gets the reason. */
const CHOICE_BOUND_MS = 4_000

type Finding = { readonly address: Address; readonly state: ServerState | null; readonly reason: string }

/** No server of the cluster is as wanted. The code makes it transient: one will be promoted. */
class NoServer extends Error {
  readonly code = 'ECONNREFUSED'
}

export class ServerFinder {
  readonly #probes: readonly Probe[]
  readonly #target: Target
  readonly #onUnusable: (isUsable: (address: Address) => boolean) => void
  #current: Address | null = null
  #findings: readonly Finding[] = []
  #round: Promise<void> | null = null

  /** @param onUnusable called when connections to other servers than those must end */
  constructor(
    probes: readonly Probe[],
    target: Target,
    onUnusable: (isUsable: (address: Address) => boolean) => void,
  ) {
    this.#probes = probes
    this.#target = target
    this.#onUnusable = onUnusable
    setInterval(() => void this.#look(), WATCH_INTERVAL_MS).unref()
  }

  /**
   * Returns the server to connect to. Waits up to four seconds for one.
   * @throws NoServer that says what each server answers
   */
  async choose(): Promise<Address> {
    const deadline = performance.now() + CHOICE_BOUND_MS
    for (;;) {
      if (this.#current === null) await this.#look()
      if (this.#current !== null) return this.#current
      if (performance.now() > deadline) throw new NoServer(this.#explain())
      await sleep(SEARCH_INTERVAL_MS)
    }
  }

  /** A connection to this server has failed: the next one waits for a fresh look. */
  suspect(address: Address): void {
    if (this.#current === address) this.#current = null
  }

  #look(): Promise<void> {
    this.#round ??= this.#askAll().finally(() => {
      this.#round = null
    })
    return this.#round
  }

  async #askAll(): Promise<void> {
    this.#findings = await Promise.all(this.#probes.map(find))
    const found = chooseServer(this.#findings, this.#target, this.#current)
    const isAway = this.#findings.every(({ state }) => state === null)
    if (found === null && isAway) {
      this.#current = null
      return
    }
    this.#current = found
    // A server that did not answer may only be slow: its connections stay until another one is found.
    const silent = this.#findings.filter(({ state }) => state === null).map(({ address }) => address)
    this.#onUnusable((address) => address === found || (found === null && silent.includes(address)))
  }

  #explain(): string {
    const all = this.#findings.map(({ address, reason }) => `${address.host}:${address.port} ${reason}`)
    return `No server is ${this.#target}: ${all.join('; ')}`
  }
}

async function find(probe: Probe): Promise<Finding> {
  const { address } = probe
  // The connections of probes do not keep the process alive, the timer does.
  const timer = setTimeout(() => probe.reset(), PROBE_BOUND_MS)
  try {
    const state = await waitWithin(PROBE_BOUND_MS, probe.ask())
    return { address, state, reason: describe(state) }
  } catch (error) {
    const { message, code } = error as Error & { code?: string }
    return { address, state: null, reason: `does not answer (${message || code})` }
  } finally {
    clearTimeout(timer)
  }
}

const describe = ({ isRecovering, isReadOnly }: ServerState): string =>
  isRecovering
    ? 'is a standby'
    : isReadOnly
      ? 'is a primary whose transactions are read-only'
      : 'is a primary'

const isWanted = (state: ServerState, target: Target): boolean => {
  switch (target) {
    case 'any':
    case 'prefer-standby':
      return true
    case 'read-write':
      return !state.isReadOnly && !state.isRecovering
    case 'read-only':
      return state.isReadOnly || state.isRecovering
    case 'primary':
      return !state.isRecovering
    case 'standby':
      return state.isRecovering
  }
}

/**
 * Returns the server to use, null without one. Of several primaries it is the one of the latest timeline: one that was
 * down while another was promoted, and came back as a primary, has an earlier one. Else the one in use stays.
 */
export function chooseServer(
  findings: readonly { readonly address: Address; readonly state: ServerState | null }[],
  target: Target,
  current: Address | null,
): Address | null {
  const wanted = findings.flatMap(({ address, state }) =>
    state !== null && isWanted(state, target) ? [{ address, state }] : [],
  )
  const standbys = target === 'prefer-standby' ? wanted.filter(({ state }) => state.isRecovering) : []
  const fitting = standbys.length > 0 ? standbys : wanted
  const latest = fitting.reduce(
    (most, { state }) => ((state.timeline ?? '') > most ? state.timeline! : most),
    '',
  )
  const best = fitting.filter(({ state }) => state.timeline === null || state.timeline === latest)
  return (best.find(({ address }) => address === current) ?? best[0])?.address ?? null
}
