/** What a gateway process tells its operators: whether it takes calls, and its metrics. */
import { isLoopback } from '../../config/settings.ts'
import { operatorAccess } from '../../core/keys/operator-access.ts'
import type { Configuration } from '../configuration.ts'
import type { Boot } from '../messages.ts'
import type { ParentLink } from '../parent-link.ts'
import type { Engines } from './engines.ts'

export class GatewayStatus {
  readonly #engines: Engines
  readonly #draining = Promise.withResolvers<void>()
  #isDraining = false
  #embeddedDown: string[] = []

  constructor(engines: Engines) {
    this.#engines = engines
  }

  get isDraining(): boolean {
    return this.#isDraining
  }

  /** Resolves when a drain begins. */
  get draining(): Promise<void> {
    return this.#draining.promise
  }

  drain(): void {
    this.#isDraining = true
    this.#draining.resolve()
  }

  /** Takes the states of the engines that the supervisor runs. */
  setEmbedded(states: Readonly<Record<string, string>>): void {
    this.#embeddedDown = Object.keys(states).filter((name) => states[name] !== 'ready')
  }

  /** Returns the reason why calls are refused, or null. */
  readonly callRefusal = (): string | null =>
    this.#isDraining
      ? 'Draining'
      : (this.#engines.journal.unreadiness() ?? this.#engines.credentials.explainUnready())

  readonly unreadiness = (): string | null => {
    const silent = this.#engines.engineWatch.down()
    const down = silent.length > 0 ? silent : this.#embeddedDown
    return !this.#isDraining && down.length > 0 ? `no answer from ${down.join(', ')}` : this.callRefusal()
  }
}

interface OperatorViewOptions {
  readonly boot: Boot
  readonly tools: { readonly configuration: Configuration }
  readonly status: GatewayStatus
  readonly parent: ParentLink
}

export const createOperatorView = ({ boot, tools, status, parent }: OperatorViewOptions) => ({
  unreadiness: status.unreadiness,
  callRefusal: status.callRefusal,
  metricsText: () => parent.askMetrics(),
  operatorAccess: () => {
    const { metrics, profile } = tools.configuration.current().config
    return operatorAccess({
      token: metrics.token,
      hasAdminListener: boot.admin !== null,
      isLoopback: isLoopback(boot.host),
      isPublicProfile: profile === 'public',
    })
  },
})
