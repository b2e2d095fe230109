/** Writes the client's request for the channel of an attempt, with the files that it names. A long body takes a while. */
import { performance } from 'node:perf_hooks'
import type { Route } from '../../../src/core/routing/catalog.ts'
import {
  type BodyInputs,
  type BodyResults,
  type BodyWorkName,
  workOnBody,
} from '../../../src/protocols/body-work.ts'
import type { EncodedRequest, EncodeOptions, ProtocolAdapter } from '../../../src/protocols/dialect.ts'
import type { AdmittedCall } from '../precharge.ts'
import { type CallFileMap, CallFiles, NO_FILES } from './call-files.ts'
import { msLeft } from './call-time.ts'
import type { ForwardDeps } from './deps.ts'

/** The call of the attempt. */
export interface WaitingCall {
  /** Runs the work unless the call has ended; an exception ends the call. */
  goOn(work: () => void): void
}

export class AttemptBody {
  readonly #deps: Pick<ForwardDeps, 'fetchFiles' | 'workOnLongBody'>
  readonly #call: WaitingCall
  /** Files that one attempt has fetched serve the next. */
  #files: CallFiles | null = null

  constructor(deps: Pick<ForwardDeps, 'fetchFiles' | 'workOnLongBody'>, call: WaitingCall) {
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
    options: Omit<EncodeOptions, 'fetched'>,
    done: (encoded: EncodedRequest) => void,
  ): void {
    const { call, request } = admitted
    const { provider } = route.channel
    const { from: client, to: upstream } = adapter
    const encode = (fetched: CallFileMap) => {
      const all = { ...options, fetched }
      // Where both speak one protocol, only places in the body change.
      if (!route.isTranslated) done(adapter.encodeRequest(call, all))
      else this.#work(admitted, 'encode', { client, upstream, call, options: all }, done)
    }
    const fetch = (urls: readonly string[]) => {
      if (urls.length === 0) return encode(NO_FILES)
      this.#files ??= new CallFiles(this.#deps.fetchFiles)
      const leftMs = msLeft(request.startedAt, performance.now())
      this.#files.fetch(urls, leftMs, encode, this.#fail)
    }
    if (!route.isTranslated) fetch(adapter.urlsToFetch(call, provider))
    else this.#work(admitted, 'urls', { client, upstream, call, provider }, fetch)
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
