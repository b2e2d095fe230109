/**
 * The request of one attempt: its body, the files that its upstream cannot fetch, and its time. See docs/api-rules.md,
 * "Timeouts" and "Attempts".
 */

import { performance } from 'node:perf_hooks'
import type { CallProtocol, ChannelEntry } from '../../../schemas/config/catalog.ts'
import type { Route } from '../../../src/core/routing/catalog.ts'
import type { HeaderLookup } from '../../../src/http/handler.ts'
import {
  type BodyInputs,
  type BodyResults,
  type BodyWorkName,
  type LongBodyWork,
  workOnBody,
} from '../../../src/protocols/body-work.ts'
import type {
  EncodedRequest,
  EncodeOptions,
  FetchedFile,
  ProtocolAdapter,
} from '../../../src/protocols/dialect.ts'
import { type CallWithOthers, nameOthersAt } from '../other-models.ts'
import type { AdmittedCall } from '../precharge.ts'
import type { ServedModel } from '../select-model.ts'

export interface UpstreamCallRequest {
  readonly channel: ChannelEntry
  /** The protocol of the upstream. */
  readonly protocol: CallProtocol
  readonly upstreamModel: string
  readonly stream: boolean
  /** The query that names a stream's framing, where the protocol has it there. */
  readonly query: string
  /** The client's headers. */
  readonly header: HeaderLookup
  readonly body: Buffer
  readonly requestId: string
  readonly deadlineMs: number
  /** From the request to its response head; absent: only the deadline counts. */
  readonly headTimeoutMs?: number
  /** A kept connection has just failed this call: the next may be as old. */
  readonly onFreshConnection: boolean
  /** W3C trace context for the upstream; null where no traces are exported. */
  readonly traceparent: string | null
}

/**
 * Fetches files that an upstream cannot fetch itself, by URL; `signal` ends it. Rejects with a `Failure`
 * `invalid_request` that names the URL, or the limit that they exceed.
 */
export type FetchFiles = (
  urls: readonly string[],
  deadlineMs: number,
  signal: AbortSignal,
) => Promise<ReadonlyMap<string, FetchedFile>>

/** A translated stream always uses this framing. */
const EVENT_STREAM_QUERY = 'alt=sse'

/** Returns how the client's request is written for the channel. */
export const chooseEncodeOptions = (
  call: CallWithOthers,
  route: Route,
  { model }: ServedModel,
  askUsage: boolean,
): EncodeOptions => ({
  upstreamModel: route.upstreamModel,
  outputCeiling: model.entry.max_output_tokens ?? null,
  outputLimitField: route.channel.output_limit_field,
  provider: route.channel.provider,
  askUsage,
  serverTools: route.channel.tools,
  otherModels: call.others.length > 0 ? nameOthersAt(call, route) : undefined,
  fetched: NO_FILES,
})

/** @param now the beginning of the attempt, on the clock of `performance.now()` */
export function buildAttemptRequest(
  { request, call, time }: AdmittedCall,
  { channel, protocol, upstreamModel, isTranslated }: Route,
  now: number,
  {
    body,
    onFreshConnection,
    traceparent,
  }: Pick<UpstreamCallRequest, 'body' | 'onFreshConnection' | 'traceparent'>,
): UpstreamCallRequest {
  return {
    channel,
    protocol: protocol as CallProtocol,
    upstreamModel,
    stream: call.stream,
    query: isTranslated ? EVENT_STREAM_QUERY : request.query,
    header: request.header,
    requestId: request.requestId,
    deadlineMs: Math.min(msLeft(time, request.startedAt, now), channelMs(channel, time)),
    headTimeoutMs: call.stream && call.isAssembled !== true && time.idleMs !== null ? time.idleMs : undefined,
    body,
    onFreshConnection,
    traceparent,
  }
}

/** The call of the attempt. */
export interface WaitingCall {
  /** Runs the work unless the call has ended; an exception ends the call. */
  goOn(work: () => void): void
}

/** Writes the client's request for the channel of an attempt, with the files that it names. A long body takes a while. */
export class AttemptBody {
  readonly #deps: LongBodyWork & { readonly fetchFiles: FetchFiles }
  readonly #call: WaitingCall
  /** Files that one attempt has fetched serve the next. */
  #files: CallFiles | null = null

  constructor(deps: LongBodyWork & { readonly fetchFiles: FetchFiles }, call: WaitingCall) {
    this.#deps = deps
    this.#call = call
  }

  /** Releases the files. */
  end(): void {
    this.#files?.end()
  }

  write(
    admitted: AdmittedCall,
    route: Route,
    adapter: ProtocolAdapter,
    options: EncodeOptions,
    done: (encoded: EncodedRequest) => void,
  ): void {
    const { call } = admitted
    const { provider } = route.channel
    const { from: client, to: upstream } = adapter
    // Where both speak one protocol, only places in the body change.
    if (!route.isTranslated) {
      const urls = adapter.urlsToFetch(call, provider)
      if (urls.length === 0) return done(adapter.encodeRequest(call, options))
      return this.#fetch(admitted, urls, (fetched) =>
        done(adapter.encodeRequest(call, { ...options, fetched })),
      )
    }
    const encode = (fetched: CallFileMap) =>
      this.#work(admitted, 'encode', { client, upstream, call, options: { ...options, fetched } }, done)
    this.#work(admitted, 'urls', { client, upstream, call, provider }, (urls) =>
      urls.length === 0 ? encode(NO_FILES) : this.#fetch(admitted, urls, encode),
    )
  }

  #fetch({ request, time }: AdmittedCall, urls: readonly string[], done: (files: CallFileMap) => void): void {
    this.#files ??= new CallFiles(this.#deps.fetchFiles)
    this.#files.fetch(urls, msLeft(time, request.startedAt, performance.now()), done, this.#fail)
  }

  readonly #fail = (error: unknown): void =>
    this.#call.goOn(() => {
      throw error
    })

  #work<Name extends BodyWorkName>(
    { known, request }: AdmittedCall,
    name: Name,
    input: BodyInputs[Name],
    done: (result: BodyResults[Name]) => void,
  ): void {
    const result = workOnBody(this.#deps, known.account.id, name, input, request.body)
    if (!(result instanceof Promise)) return done(result)
    result.then((found) => this.#call.goOn(() => done(found)), this.#fail)
  }
}

type CallFileMap = ReadonlyMap<string, FetchedFile>
const NO_FILES: CallFileMap = new Map()

/** The files of one chat call that its upstream cannot fetch: fetched once for all attempts, ended with the call. */
class CallFiles {
  readonly #fetchFiles: FetchFiles
  readonly #ended = new AbortController()
  #files: CallFileMap | null = null

  constructor(fetchFiles: FetchFiles) {
    this.#fetchFiles = fetchFiles
  }

  /** Calls `done` with the files of `urls`, or `failed`, later; calls neither once the call has ended. */
  fetch(
    urls: readonly string[],
    deadlineMs: number,
    done: (files: CallFileMap) => void,
    failed: (error: unknown) => void,
  ): void {
    const { signal } = this.#ended
    const kept = this.#files
    const files =
      kept !== null && urls.every((url) => kept.has(url))
        ? Promise.resolve(kept)
        : this.#fetchFiles(urls, deadlineMs, signal)
    files
      .then((fetched) => {
        if (signal.aborted) return
        this.#files = fetched
        done(fetched)
      })
      .catch((error) => signal.aborted || failed(error))
  }

  /** Aborts running fetches, and releases the files fetched. */
  end(): void {
    this.#ended.abort()
    this.#files = null
  }
}

const MS_PER_SECOND = 1000
/** A timeout of an attempt with a smaller share of its channel's time says nothing about the channel. */
const TELLING_SHARE = 0.5

type Timed = Pick<ChannelEntry, 'timeout_seconds'>
type CallTime = AdmittedCall['time']

/** Returns what is left of a call that began at `startedAt`. */
const msLeft = ({ totalMs }: CallTime, startedAt: number, now: number): number =>
  Math.max(1, totalMs - (now - startedAt))

const channelMs = ({ timeout_seconds: seconds }: Timed, { totalMs }: CallTime): number =>
  seconds === undefined ? totalMs : Math.min(seconds * MS_PER_SECOND, totalMs)

/** Returns whether a timeout of an attempt that began at `now` is the channel's fault. */
export const isTellingTimeout = (
  channel: Timed,
  { time, request }: Pick<AdmittedCall, 'time' | 'request'>,
  now: number,
): boolean => msLeft(time, request.startedAt, now) >= TELLING_SHARE * channelMs(channel, time)
