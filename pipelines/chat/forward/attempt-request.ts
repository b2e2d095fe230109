/** The request of one attempt, as it goes to its channel. */
import type { ChatProtocol } from '../../../schemas/config/catalog.ts'
import type { Route } from '../../../src/core/routing/catalog.ts'
import type { EncodeOptions } from '../../../src/protocols/dialect.ts'
import type { AdmittedCall } from '../precharge.ts'
import type { ServedModel } from '../select-model.ts'
import { attemptMs } from './call-time.ts'
import type { UpstreamCallRequest } from './deps.ts'

/** A translated stream always uses this framing. */
const EVENT_STREAM_QUERY = 'alt=sse'

/** Returns how the client's request is written for the channel. */
export const encodeOptions = (
  { channel, upstreamModel }: Route,
  { model }: ServedModel,
  askUsage: boolean,
): Omit<EncodeOptions, 'fetched'> => ({
  upstreamModel,
  outputCeiling: model.entry.max_output_tokens ?? null,
  outputLimitField: channel.output_limit_field,
  provider: channel.provider,
  askUsage,
})

/** @param now the beginning of the attempt, on the clock of `performance.now()` */
export function attemptRequest(
  { request, call }: AdmittedCall,
  { channel, protocol, upstreamModel, isTranslated }: Route,
  now: number,
  rest: Pick<UpstreamCallRequest, 'body' | 'onFreshConnection' | 'traceparent'>,
): UpstreamCallRequest {
  return {
    channel,
    protocol: protocol as ChatProtocol,
    upstreamModel,
    stream: call.stream,
    query: isTranslated ? EVENT_STREAM_QUERY : request.query,
    header: request.header,
    requestId: request.requestId,
    deadlineMs: attemptMs(channel, request.startedAt, now),
    ...rest,
  }
}
