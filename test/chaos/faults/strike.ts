/** Carries out planned faults, and heals each. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Record } from '../history.ts'
import type { PlannedFault } from './plan.ts'
import type { Victim } from './victims.ts'

/** Resolves when the last fault is over. A victim that suffers already is left alone, and so is one that is not there. */
export async function strikeAll(
  plan: readonly PlannedFault[],
  victims: ReadonlyMap<string, Victim>,
  record: Record,
): Promise<void> {
  const startedAt = performance.now()
  const suffering = new Set<string>()
  const strikes = plan.map(async (fault) => {
    await sleep(fault.atMs - (performance.now() - startedAt))
    const victim = victims.get(fault.victim)
    const machine = fault.victim.split(' ', 1)[0]!
    if (victim === undefined || suffering.has(machine)) {
      record({ type: 'fault', at: Date.now(), ...fault, state: 'skipped' })
      return
    }
    suffering.add(machine)
    record({ type: 'fault', at: Date.now(), ...fault, state: 'begins' })
    try {
      await strike(victim, fault)
    } finally {
      suffering.delete(machine)
    }
    record({ type: 'fault', at: Date.now(), ...fault, state: 'over' })
  })
  await Promise.all(strikes)
}

async function strike(victim: Victim, { act, lastsMs }: PlannedFault): Promise<void> {
  switch (act) {
    case 'kill':
      await victim.kill?.()
      await sleep(lastsMs)
      await victim.start?.()
      return
    case 'pause':
      victim.pause?.()
      await sleep(lastsMs)
      victim.resume?.()
      return
    default:
      victim.cutOff?.(act)
      await sleep(lastsMs)
      victim.rejoin?.()
  }
}
