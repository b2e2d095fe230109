/**
 * The interface between the server and a handler. A handler is one function from a request to one cold Observable of
 * reply events; the server subscribes once and unsubscribes when the client has left.
 */
import type { Observable } from 'rxjs'
import type { PathParameter } from '../../schemas/routes.ts'

/** Returns a header. Names are lower case; an absent header reads as the empty string. */
export type HeaderLookup = (name: string) => string
export type HeaderList = ReadonlyArray<readonly [string, string]>

export interface FormLimits {
  readonly maxFields: number
  readonly maxFieldBytes: number
  readonly maxFiles: number
  /** The bytes of files are kept, and count as those of a body do. */
  readonly keepsFiles?: true
  /** Names of files keep their folders. */
  readonly keepsFolders?: true
}

/** A file of a form, during its upload. The form continues when its content has been read. */
export interface FormFile {
  readonly field: string
  /** As the client calls it, without folders unless the limits keep them. */
  readonly name: string
  /** The type that the client reports. */
  readonly mediaType: string
  readonly content: AsyncIterable<Buffer>
}

/** Takes a file. `before` are the fields before it. */
export type TakeFile = (
  file: FormFile,
  before: ReadonlyArray<readonly [name: string, value: string]>,
) => Promise<void>

export interface FormContent {
  /**
   * Reads fields in their order and passes each file on as it arrives. Called once. Resolves only when every
   * `takeFile` has.
   * @throws Failure for a body that is no form, or is over a limit; and the first error of `takeFile`
   */
  read(limits: FormLimits, takeFile: TakeFile): Promise<ReadonlyArray<readonly [name: string, value: string]>>
}

/** The parameters of a route's path, decoded. */
export type PathParams = Readonly<Record<PathParameter, string>>

/** One request, copied out of the server before the first turn of the event loop has passed. */
export interface GatewayRequest {
  /** `req_` + ULID, sent back as `x-gateway-trace`. */
  readonly requestId: string
  readonly method: string
  readonly path: string
  readonly params: PathParams
  /** The text after `?`, undecoded; empty when there is none. */
  readonly query: string
  readonly header: HeaderLookup
  /** Distinguishes an absent header from an empty one. */
  readonly hasHeader: (name: 'idempotency-key') => boolean
  /** The whole body, the request's own copy; empty where it is a form that is read as it comes. */
  readonly body: Buffer
  /** On routes that take forms: the form that the body is, not read yet. */
  readonly form?: FormContent | null
  /** Returns the address of the client; readable until the reply is over. */
  readonly address?: () => string
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
 * Reply events, in the order `full` or `head data*`. An error before the first byte becomes a status and a body in the
 * protocol's shape; an error after it closes the connection without the end that HTTP gives a body, so that no client
 * takes a part for the whole.
 * `bytes` of `data` are valid only while the event is delivered.
 */
export type Reply =
  | {
      readonly type: 'full'
      readonly status: number
      /** The id of the original request, where the answer is a replayed one or its work was found again; else absent. */
      readonly requestId?: string
      readonly headers: HeaderList
      readonly body: string | Uint8Array
      /** It is an upstream's refusal: its 401 says nothing about the client's key. */
      readonly isOfUpstream?: true
      /** The request was an upgrade: the connection becomes a WebSocket on which this session talks. */
      readonly session?: SocketSession
    }
  | {
      readonly type: 'head'
      readonly status: number
      /** As of a `full` reply. */
      readonly requestId?: string
      readonly headers: HeaderList
      readonly flow: Flow | null
      /** Bytes of the body, above 0: sent to the client; a body that falls short of it has its connection cut. */
      readonly length?: number
      /**
       * Sets a sink during the delivery of the head; it gets the data directly instead of as events: a chunk then
       * costs nothing in the stages. The end still comes as an event.
       */
      readonly direct?: (sink: DataSink) => void
    }
  | { readonly type: 'data'; readonly bytes: Uint8Array | string }

export type FullReply = Extract<Reply, { type: 'full' }>

/** Turns the messages of one WebSocket into calls, and their replies into messages. */
export interface SocketSession {
  /** Returns null for a message that asks for nothing. @throws Failure for one that it cannot read */
  read(message: Buffer): SocketRequest | null
  /** Prints what is refused before a call begins, or ends the connection. */
  printRefusal(refusal: FullReply, requestId: string): string
  /** The last message on a connection that has been open for its whole time. */
  readonly expired: string
  /** Bytes that it keeps for the next call. */
  readonly keptBytes: number
  forget(): void
  /** Called once, when the connection is over. */
  close(): void
}

/** A call that a message asks for. */
export interface SocketRequest {
  readonly method: string
  readonly handler: Handler
  readonly body: Buffer
  /** Returns what turns the reply into messages, and passes each to `send`. */
  readonly openReply: (send: (message: string) => void) => SocketReply
}

export interface SocketReply extends DataSink {
  /** Called when the reply is complete. */
  end(requestId: string): void
  /** Called when the call is refused, or its reply breaks off. */
  fail(refusal: FullReply, requestId: string): void
}

/** An object, not a function: a function costs each chunk of each stream its own memory, and that of its context. */
export interface DataSink {
  /** @param bytes valid only during the call */
  data(bytes: Uint8Array): void
}

/** The parts of a request before its body. */
export type RequestHead = Pick<GatewayRequest, 'header' | 'query'>

export interface Handler {
  (request: GatewayRequest): Observable<Reply>
  /**
   * Decides from the head of a request, at an instant in epoch milliseconds, whether its body may be kept: returns
   * null where it may, a promise where that needs a look-up. The handler checks again.
   * @param mayLookUp false: refuses a key that this process does not know
   * @throws Failure, as the promise does, for a request that is refused
   */
  readonly admit?: (head: RequestHead, now: number, mayLookUp?: boolean) => Promise<void> | null
}
