/** The time of a chat call, and what of it an attempt has. See docs/api-rules.md, "Timeouts" and "Attempts". */
import type { ChannelEntry } from '../../../schemas/config/catalog.ts'

/** The whole of a chat call, streaming included. */
export const CHAT_DEADLINE_MS = 180_000
const MS_PER_SECOND = 1000
/** A timeout of an attempt with a smaller share of its channel's time says nothing about the channel. */
const TELLING_SHARE = 0.5

type Timed = Pick<ChannelEntry, 'timeout_seconds'>

/** Returns what is left of a call that began at `startedAt`. */
export const msLeft = (startedAt: number, now: number): number =>
  Math.max(1, CHAT_DEADLINE_MS - (now - startedAt))

const channelMs = ({ timeout_seconds: seconds }: Timed): number =>
  Math.min(seconds * MS_PER_SECOND, CHAT_DEADLINE_MS)

/** Returns the time of an attempt that begins now. */
export const attemptMs = (channel: Timed, startedAt: number, now: number): number =>
  Math.min(msLeft(startedAt, now), channelMs(channel))

/** Returns whether a timeout of an attempt that began at `now` is the channel's fault. */
export const isTellingTimeout = (channel: Timed, startedAt: number, now: number): boolean =>
  msLeft(startedAt, now) >= TELLING_SHARE * channelMs(channel)
