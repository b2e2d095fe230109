/** Stages that add what a request asks for, and what is found for it. */
import { map } from 'rxjs'
import { fromAbortable } from './from-abortable.ts'
import { type Call, type Stage, stage } from './stage.ts'

export interface Asked<Params> {
  readonly params: Params
}

export interface Found<T> {
  readonly found: T
}

/** Adds what the client asks for. @throws Failure as `read` does */
export const readParams = <C extends Call, Params>(read: (call: C) => Params): Stage<C, C & Asked<Params>> =>
  stage((call: C) => ({ ...call, params: read(call) }))

/** Adds what `work` finds. The signal aborts when the client leaves. @throws Failure as `work` does */
export const find = <C extends Call, T>(
  work: (call: C, signal: AbortSignal) => Promise<T>,
): Stage<C, C & Found<T>> =>
  stage((call: C) => fromAbortable((signal) => work(call, signal)).pipe(map((found) => ({ ...call, found }))))
