/**
 * What passes between the server and a handler. A handler is one function from a request to one cold
 * Observable of reply events; the server subscribes once and unsubscribes when the client is gone.
 */
import type { Observable } from 'rxjs'

/** Header names are lower case; an absent header reads as the empty string. */
export type HeaderLookup = (name: string) => string
export type HeaderList = ReadonlyArray<readonly [string, string]>

export interface FormLimits {
  readonly maxFields: number
  readonly maxFieldBytes: number
  readonly maxFiles: number
}

/** A file of a form while it comes. The form goes on when its content has been read. */
export interface FormFile {
  readonly field: string
  /** As the client calls it, without folders. */
  readonly name: string
  /** As the client says. */
  readonly mediaType: string
  readonly content: AsyncIterable<Buffer>
}

/** `before`: the fields that came before it. */
export type TakeFile = (
  file: FormFile,
  before: ReadonlyArray<readonly [name: string, value: string]>,
) => Promise<void>

export interface FormContent {
  /**
   * Fields in the order in which they came; each file is handed over as it comes. To be called once. Ends only when
   * every `takeFile` has.
   * @throws Failure for what is no form, or is over a limit; and what `takeFile` throws first
   */
  read(limits: FormLimits, takeFile: TakeFile): Promise<ReadonlyArray<readonly [name: string, value: string]>>
}

/** One request, copied out of the server before the first turn of the event loop has passed. */
export interface GatewayRequest {
  /** `req_` + ULID, sent back as `x-gateway-trace`. */
  readonly requestId: string
  readonly method: string
  readonly path: string
  /** What follows `?`, undecoded; empty when there is none. */
  readonly query: string
  readonly header: HeaderLookup
  /** Distinguishes an absent header from an empty one. */
  readonly hasHeader: (name: 'idempotency-key') => boolean
  /** The whole body, the request's own copy; empty where it is a form that is read as it comes. */
  readonly body: Buffer
  /** On routes that take forms: the form that the body is, not read yet. */
  readonly form?: FormContent | null
  /** When the request reached the gateway, epoch milliseconds. */
  readonly submittedAt: number
  /** The same instant on `performance.now()`'s clock, for durations. */
  readonly startedAt: number
}

/** The gate: what writes to the client pauses what reads from the upstream. */
export interface Flow {
  pause(): void
  resume(): void
}

/**
 * Reply events, in the order `full` or `head data*`. An error before `head` becomes a status and a body in the
 * protocol's shape; an error after it ends the reply without the protocol's closing mark.
 * `bytes` of `data` are valid only while the event is delivered.
 */
export type Reply =
  | {
      readonly type: 'full'
      readonly status: number
      /** The request whose answer this is, where it is replayed; else the request's own. */
      readonly requestId?: string
      readonly headers: HeaderList
      readonly body: string | Uint8Array
    }
  | {
      readonly type: 'head'
      readonly status: number
      readonly headers: HeaderList
      readonly flow: Flow | null
      /** Bytes of the body, above 0: sent to the client; a body that falls short of it has its connection cut. */
      readonly length?: number
      /**
       * The body has no closing mark. Where it fails its connection is cut, so that nobody takes a part of it
       * for the whole.
       */
      readonly endsUnmarked?: true
      /**
       * A sink passed while the head is delivered gets the data directly instead of as events: a chunk then
       * costs nothing on its way through the stages. The end comes as ever.
       */
      readonly direct?: (sink: DataSink) => void
    }
  | { readonly type: 'data'; readonly bytes: Uint8Array | string }

/** An object, not a function: a function costs each chunk of each stream its own memory, and that of its context. */
export interface DataSink {
  /** @param bytes valid only during the call */
  data(bytes: Uint8Array): void
}

/** What is known of a request before its body has come. */
export type RequestHead = Pick<GatewayRequest, 'header' | 'query'>

export interface Handler {
  (request: GatewayRequest): Observable<Reply>
  /**
   * Says from the head of a request, at an instant in epoch milliseconds, whether its body may be kept: null where it
   * may, a promise where that has to be looked up. The handler itself checks again.
   * @param mayLookUp false: what this process does not know is refused
   * @throws Failure, as the promise does, for a request that is refused
   */
  readonly admit?: (head: RequestHead, now: number, mayLookUp?: boolean) => Promise<void> | null
}
