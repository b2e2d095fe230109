/**
 * The interface of a media adapter: it describes requests to an upstream and reads its answers. No I/O and no
 * clock.
 */
import type { ChannelEntry } from '../../../schemas/config/catalog.ts'
import type { FileRef, MediaJob, MediaWork, TaskResult, TaskWork } from '../../../schemas/media/job.ts'
import type { HeaderFields } from '../channel.ts'

/** A file of the object store that is sent along: read when it is sent, never held whole. */
interface StoredFile {
  readonly key: string
  readonly mediaType: string
  readonly bytes: number
  readonly name: string
}

export type FormPart =
  | { readonly name: string; readonly value: string }
  | { readonly name: string; readonly file: StoredFile }

type MediaRequestBody =
  | { readonly type: 'json'; readonly value: unknown }
  /** JSON already. */
  | { readonly type: 'json_text'; readonly bytes: Buffer }
  | { readonly type: 'form'; readonly parts: readonly FormPart[] }

export interface MediaRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  /** Absolute. */
  readonly url: string
  /** Besides those of the body: the key, and the channel's own. */
  readonly headers: HeaderFields
  readonly body: MediaRequestBody | null
  /** The channel whose `auth` authorizes the request; absent where a key in `headers` does. */
  readonly authorizedAs?: ChannelEntry
}

export interface MediaAnswer {
  readonly status: number
  /** Returns a header by its lower-case name; null when absent. */
  readonly header: (name: string) => string | null
  readonly body: Buffer
}

/** Bytes inside an answer that have to go into the store. */
export interface DeliveredBytes {
  /** Which of `result.files` it is. */
  readonly file: number
  readonly bytes: Buffer
  readonly mediaType: string
}

export interface Produced {
  readonly type: 'produced'
  readonly result: TaskResult
  readonly inline: readonly DeliveredBytes[]
}

/**
 * A refusal with the upstream's own text: no work was or will be accepted. `status` is the client's, 400 to 599; for a
 * refusal within a 200, the one that the upstream should have used.
 */
export interface Refused {
  readonly type: 'refused'
  readonly status: number
  readonly message: string
  /** Set where the upstream reports that its own connection failed; otherwise the status gives the code. */
  readonly code?: 'upstream_unreachable' | 'upstream_timeout'
}

export type SubmitOutcome =
  | Produced
  | Refused
  | {
      readonly type: 'accepted'
      readonly upstreamId: string
      readonly isRunning: boolean
      /** The upstream's own word for it. */
      readonly upstreamState: string
    }
  /** It may have been taken on: it must not be sent again. */
  | { readonly type: 'unknown'; readonly reason: string }

/** State of a task, at once or after a second request. */
export type PollOutcome =
  | PollState
  /** The task is finished, and its result has to be requested separately. */
  | {
      readonly type: 'finished'
      readonly upstreamState: string
      readonly result: {
        request(channel: ChannelEntry): MediaRequest
        read(answer: MediaAnswer): PollState
      }
    }

export type PollState =
  | (Produced & { readonly upstreamState: string })
  | { readonly type: 'queued' | 'running'; readonly upstreamState: string }
  | { readonly type: 'lapsed' | 'cancelled'; readonly upstreamState: string; readonly result?: TaskResult }
  | {
      readonly type: 'failed'
      readonly upstreamState: string
      /** A code of ours that a client can act on. */
      readonly code: string
      readonly message: string
      /** Its usage, where that is charged all the same. */
      readonly result?: TaskResult
    }
  /** An unmapped state: logged, changes nothing. */
  | { readonly type: 'unmapped'; readonly upstreamState: string }
  /** The poll itself failed: changes nothing. */
  | { readonly type: 'error'; readonly reason: string }

/** A job with the place of every file in it, ready to be sent. */
export interface MediaSubmit<Job extends MediaJob = MediaJob> {
  readonly job: Job
  readonly upstreamModel: string
  /** Our own id of the task, for upstreams that take a reference of ours. */
  readonly reference: string
  /**
   * Returns the file as text in a request: the caller's own link, or a data URI of a file in our store. For files that
   * the adapter's `inlines` covers; others are sent as form parts.
   */
  readonly resolveUrl: (file: FileRef) => string
}

export interface MediaPoll {
  readonly upstreamId: string
  readonly upstreamModel: string
  readonly job: MediaJob
  /** Provider in whose form usage is read; absent: the usual form. */
  readonly provider?: string | undefined
}

/** An adapter to an upstream that does the work of tasks. */
export interface TaskAdapter {
  readonly works: readonly TaskWork[]
  /** The files of a job are written into its request as text, by `resolveUrl`; else they are form parts. */
  readonly inlines: boolean
  /**
   * Returns the caller's links to copy into our store before `submit` is called with their replacements, because the
   * upstream takes bytes only. Default: none.
   */
  readonly takesIn?: (job: MediaJob) => readonly FileRef[]
  /** @throws Error for a job that is none of `works` */
  submit(channel: ChannelEntry, submit: MediaSubmit): MediaRequest
  /** Reads a whole answer of any kind. Never throws, like all readers. */
  readSubmit(answer: MediaAnswer, submit: MediaSubmit): SubmitOutcome
  /**
   * Returns the request for a file of a result that opens only with the access of the channel; null where its link is
   * enough. Default: null for each.
   */
  readonly fileRequest?: (channel: ChannelEntry, url: string) => MediaRequest | null
  /**
   * Of an upstream that answers with the result itself to requests whose clients do not wait: how long its work may take,
   * milliseconds. Default: as for any submit of the kind.
   */
  readonly workTimeoutMs?: number
  /** Null where the upstream answers with the result itself. */
  readonly follow: {
    poll(channel: ChannelEntry, poll: MediaPoll): MediaRequest
    readPoll(answer: MediaAnswer, poll: MediaPoll): PollOutcome
    /**
     * Absent where the upstream cannot cancel. Sent only for tasks whose last state was queued, unless `cancelsRunning`;
     * a 2xx means that the task is cancelled, any other answer that it is not.
     */
    readonly cancel?: (channel: ChannelEntry, poll: MediaPoll) => MediaRequest
    /** It charges for what it has begun, and a poll after the cancel says how much was used. */
    readonly cancelsRunning?: true
    /**
     * Finds a submit by our reference; absent where the upstream cannot. `refused` means that it was certainly not
     * accepted; `unknown`, that the request has to be repeated.
     */
    readonly find?: {
      request(channel: ChannelEntry, reference: string, job: MediaJob): MediaRequest
      read(answer: MediaAnswer): SubmitOutcome
    }
  } | null
}

export type PresetKind = 'avatar' | 'voice'

/** An avatar or a voice that everybody may use. */
export interface Preset {
  readonly id: string
  readonly name: string
}

/** A list that the upstream keeps. */
export interface PresetSource {
  request(channel: ChannelEntry): MediaRequest
  /** Returns the presets. Null: the upstream failed to answer. */
  read(answer: MediaAnswer): readonly Preset[] | null
}

/** Presets that are built in, or listed by the upstream. */
export type PresetPlace =
  | { readonly type: 'known'; readonly presets: readonly Preset[] }
  | { readonly type: 'asked'; readonly source: PresetSource }

/** One whose upstream makes media. */
export interface MediaAdapter extends TaskAdapter {
  readonly works: readonly MediaWork[]
  /**
   * The end of its base URLs, null before any version, and the path that the gateway appends to it, empty for one that
   * differs by job: an operator must not write that too.
   */
  readonly baseUrl: { readonly end: string | null; readonly appended: string } | 'any'
  /** Default: none. */
  readonly presets?: Readonly<Partial<Record<PresetKind, PresetPlace>>>
  /**
   * Returns true where the upstream takes no length for the job. A client must not choose the price by a length that is
   * not sent. Default: none.
   */
  readonly fixesLength?: (job: MediaJob) => boolean
  /** Returns true where the upstream cannot be asked for sound or for none. Default: none. */
  readonly fixesSound?: (channel: ChannelEntry, job: MediaJob) => boolean
}
