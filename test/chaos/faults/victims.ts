/** Everything in an installation that can fail, by name, and how. */
import { setTimeout as sleep } from 'node:timers/promises'
import { childrenOf, isRunning, type Role } from '../../end-to-end/chaos/processes.ts'
import { descendantsOf, signalQuietly } from '../../support/descendants.ts'
import type { TestService } from '../../support/service.ts'
import type { Installation, Node } from '../installation/installation.ts'
import type { Interruption } from '../installation/relay.ts'

const START_ATTEMPTS = 30
const START_PAUSE_MS = 1_000

export interface Victim {
  /** SIGKILL. */
  readonly kill?: () => Promise<void>
  /** Starts what was killed, where nothing else does. */
  readonly start?: () => Promise<void>
  readonly pause?: () => void
  readonly resume?: () => void
  readonly cutOff?: (how: Interruption) => void
  readonly rejoin?: () => void
}

export function victimsOf(installation: Installation): ReadonlyMap<string, Victim> {
  const { network, programs, nodes, engines } = installation
  const cuts = (name: string) => ({
    cutOff: (how: Interruption) => network.cutOff(name, how),
    rejoin: () => network.rejoin(name),
  })
  const victims = new Map<string, Victim>()
  for (const program of programs)
    victims.set(program.name, {
      kill: () => program.kill(),
      start: () => program.start(),
      pause: () => program.pause(),
      resume: () => program.resume(),
      ...cuts(program.name),
    })
  for (const node of nodes) {
    victims.set(node.name, { ...machine(node), ...cuts(node.name) })
    const roles = node.url === null ? (['settler', 'tasks'] as const) : (['gateway'] as const)
    for (const role of roles) victims.set(`${node.name} ${role}`, child(node, role))
  }
  const pidOf = (name: 'clickhouse' | 'simulator') => engines.readHealth()[name]?.pid ?? null
  const signals = (name: 'clickhouse' | 'simulator') => ({
    pause: () => signalAll(pidOf(name), 'SIGSTOP'),
    resume: () => signalAll(pidOf(name), 'SIGCONT'),
  })
  victims.set('clickhouse', {
    kill: async () => engines.killEngine('clickhouse'),
    ...signals('clickhouse'),
    ...cuts('clickhouse'),
  })
  // It keeps what it has seen in memory, and is not ours: it is never killed.
  victims.set('provider', { ...signals('simulator'), ...cuts('provider') })
  return victims
}

function signalAll(pid: number | null, signal: NodeJS.Signals): void {
  if (pid !== null) for (const each of [pid, ...descendantsOf(pid)]) signalQuietly(each, signal)
}

/** All processes of a service. */
const machine = ({ service }: Node): Victim => ({
  kill: () => service.kill(),
  start: () => startAgain(service),
  pause: () => signalAll(service.pid(), 'SIGSTOP'),
  resume: () => signalAll(service.pid(), 'SIGCONT'),
})

/** A service does not start while an engine that it needs is away: then it is started once more, as by an init process. */
async function startAgain(service: TestService): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await service.start()
    } catch (error) {
      if (attempt === START_ATTEMPTS) throw error
      await service.kill()
      await sleep(START_PAUSE_MS)
    }
  }
}

/** One process of a service, which its supervisor starts again. */
function child({ service }: Node, role: Role): Victim {
  const pids = () => childrenOf(service.pid(), role).filter(isRunning)
  const send = (signal: NodeJS.Signals) => {
    for (const pid of pids()) signalQuietly(pid, signal)
  }
  return {
    kill: async () => send('SIGKILL'),
    pause: () => send('SIGSTOP'),
    resume: () => send('SIGCONT'),
  }
}
