/** Providers that refuse the option by which usage is asked for: they are asked again without it (failures, row 34). */
import type { Route } from '../src/core/catalog.ts'
import type { ChatCall } from '../src/protocols/dialect.ts'
import type { AttemptFailure } from './upstream-error.ts'

/** One provider may refuse for one model what it takes for another. */
export const nameAtUpstream = ({ channel, upstreamModel }: Route): string => `${channel.id} ${upstreamModel}`

/** Most often there is none: then no name is made. */
export const isAmong = (refusing: ReadonlySet<string>, route: Route): boolean =>
  refusing.size > 0 && refusing.has(nameAtUpstream(route))

/** Whether the option, which the call did ask for, is what was refused. */
export function rejectsUsageOption({ stream, source }: ChatCall, { code, message }: AttemptFailure): boolean {
  if (code !== 'invalid_request' || !/stream_options/.test(message)) return false
  const { request } = (source ?? {}) as { request?: { stream_options?: object | null } }
  // What else the client wants of the stream is its own to answer for.
  return stream && Object.keys(request?.stream_options ?? {}).every((option) => option === 'include_usage')
}
