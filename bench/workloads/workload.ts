import { setTimeout as delay } from 'node:timers/promises'
import { type CoreLatency, readPlacement } from '../harness/core-latency.ts'
import { cpuNs, residentBytes } from '../harness/proc.ts'
import type { LoadGenerator } from '../load/generator.ts'
import { probe } from '../load/probe.ts'
import type { Endpoint } from '../load/request.ts'
import type { Processes, RunningSubject, Subject } from '../subjects/subject.ts'
import { isWhole, type Pace, type Profile, type WholeProfile } from '../upstream/replies.ts'

/** The size of a run; `--quick` has lower numbers. */
export interface Size {
  name: 'full' | 'quick'
  rounds: number
  /** Share of the calls and streams of a full run. */
  effort: number
  /** Of the workloads at a steady rate. */
  steadySeconds: number
  paced: { streams: number; windowSeconds: number }
  held: { streams: number; windowSeconds: number }
}

export const FULL: Size = {
  name: 'full',
  rounds: 5,
  effort: 1,
  steadySeconds: 4,
  paced: { streams: 500, windowSeconds: 3 },
  held: { streams: 9_000, windowSeconds: 3 },
}

export const QUICK: Size = {
  name: 'quick',
  rounds: 1,
  effort: 0.3,
  steadySeconds: 1,
  paced: { streams: 200, windowSeconds: 1.5 },
  held: { streams: 2_000, windowSeconds: 1 },
}

/** What a workload uses. */
export interface Bench {
  size: Size
  load: LoadGenerator
  coreLatency: CoreLatency
  /** What the upstream streams under each profile. */
  paces: Record<Exclude<Profile, WholeProfile>, Pace>
}

/** Figures of one round by name; the unit is in the name. */
export type Metrics = Record<string, number>

export interface Workload {
  name: string
  title: string
  /** True when each subject starts again for it, without the others. */
  alone: boolean
  /**
   * True where only the gateway process is measured: Tollgate's settler and engines then run on another core. False where
   * they count too.
   */
  enginesElsewhere: boolean
  /** True when one round is enough, because other work on the machine does not change the figure. */
  once: boolean
  takes(subject: Subject, running: RunningSubject): boolean
  /** Warms the subject up and checks its responses in full. */
  prepare(subject: Subject, running: RunningSubject, bench: Bench): Promise<void>
  /** Returns the samples of one round. Throws when one response was wrong. */
  measure(subject: Subject, running: RunningSubject, bench: Bench): Promise<readonly Metrics[]>
}

export const SAMPLES_PER_ROUND = 3

/** Takes samples that depend on the placement of the cores, each with the round trip between them. */
export const takeSamples = async (
  { coreLatency }: Bench,
  times: number,
  sample: () => Promise<Metrics>,
): Promise<readonly Metrics[]> => {
  const found: Metrics[] = []
  while (found.length < times) {
    const before = await coreLatency()
    const metrics = await sample()
    found.push({ ...metrics, ...stableRoundTrip(before, await coreLatency()) })
  }
  return found
}

/** Returns nothing where the cores moved, or where the placement is not known. */
const stableRoundTrip = (before: number | null, after: number | null): Metrics => {
  if (before === null || after === null || readPlacement(before) !== readPlacement(after)) return {}
  return { coreRoundTripNs: (before + after) / 2 }
}

/** Returns how many chunks a stream of the profile must have; null for a profile without stream. */
export const splitChunks = (profile: Profile, bench: Bench): number | null =>
  isWhole(profile) ? null : bench.paces[profile].chunks

/** Checks one response of the profile in full. `burst` stands in for paced profiles, which take seconds. */
export const checkAnswer = (endpoint: Endpoint, profile: Profile, bench: Bench): Promise<number> =>
  probe(endpoint, profile, splitChunks(profile, bench) ?? 0)

const sum = (values: number[]): number => values.reduce((a, b) => a + b, 0)

export interface CpuUse {
  /** CPU microseconds by role of the subject's processes. */
  byRole: Record<string, number>
  gatewayUs: number
  allUs: number
}

const cpuByRole = (processes: Processes): Record<string, number> =>
  Object.fromEntries(Object.entries(processes).map(([role, pids]) => [role, cpuNs(pids) / 1000]))

/** Starts counting CPU time. The returned function gives the use since then. */
export const startCpuCount = (running: RunningSubject): (() => CpuUse) => {
  const before = cpuByRole(running.processes())
  return () => {
    const after = cpuByRole(running.processes())
    const byRole = Object.fromEntries(
      Object.entries(after).map(([role, us]) => [role, Math.max(0, us - (before[role] ?? 0))]),
    )
    return { byRole, gatewayUs: byRole.gateway ?? 0, allUs: sum(Object.values(byRole)) }
  }
}

/** A subject is idle when all its processes together use less of a core than this. */
const IDLE_PERCENT = 10
const IDLE_POLL_MS = 50
const IDLE_LIMIT_MS = 10_000

/** Waits until a subject has finished its deferred work, so that it does not share the core with the next subject. */
export const untilIdle = async (running: RunningSubject): Promise<void> => {
  const deadline = performance.now() + IDLE_LIMIT_MS
  for (let busyPercent = 100; busyPercent > IDLE_PERCENT && performance.now() < deadline; ) {
    const startedAt = performance.now()
    const stop = startCpuCount(running)
    await delay(IDLE_POLL_MS)
    busyPercent = stop().allUs / (performance.now() - startedAt) / 10
  }
}

/** Returns the resident memory of the processes that carry calls, in bytes. */
export const gatewayResidentBytes = (running: RunningSubject): number =>
  residentBytes(running.processes().gateway)

/** True for calls straight to the upstream: there is no process to measure. */
export const hasNoProcess = (running: RunningSubject): boolean => running.processes().gateway.length === 0
